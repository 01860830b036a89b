"""Pages of the process itself: its start, its end, its own faults."""

from collections.abc import Mapping

from broker.explain.page import Page

PAGES: Mapping[str, Page] = {
    "ready": Page("Clients are served from now on, at the address that the line names."),
    "stopping": Page(
        "A signal asked the broker to stop. New clients are refused, requests under way are "
        "answered, everything is forced to the disk."
    ),
    "stopped": Page(
        "The broker has stopped. clean=True: every log is on the disk and the next start reads no "
        "log again. clean=False: some log could not be closed well; exit status 4.",
        "With clean=False look for fsync_failed before it, and at the disk. The next start "
        "recovers the logs from what is there.",
    ),
    "stop_forced": Page(
        "A second signal came while the broker was stopping: it ended at once, with exit status "
        "130. What was acknowledged as durable is; the next start recovers the logs.",
        "Give it more time to stop: 10 seconds are enough in a container.",
    ),
    "setting_ignored": Page(
        "A setting of Kafka's was given a value that has no effect in this broker; the line says "
        "why.",
        "Remove it, or leave it: nothing depends on it.",
    ),
    "settings_reloaded": Page(
        "SIGHUP: the settings were read again and those that may change at run time apply. The "
        "line names the keys that changed, and those that need a restart."
    ),
    "http_token_renewed": Page(
        "SIGHUP: the file of horolog.http.token.file holds other tokens than before. They are "
        "valid from now on, and those that are gone are refused."
    ),
    "certificate_renewed": Page(
        "The file of a listener's certificate holds another one than before: new connections are "
        "shown that, open ones stay. not_after is its end."
    ),
    "certificate_not_renewed": Page(
        "The file of a listener's certificate has changed, and cannot be used; the one before "
        "stays, to its end. detail names file and reason. It is read again each minute.",
        "Put a whole file there with key, certificate and chain. Another subject, or fewer "
        "alternative names, need ssl.allow.dn.changes, ssl.allow.san.changes or a restart.",
    ),
    "settings_not_reloaded": Page(
        "SIGHUP: the settings were read again and are wrong, so none of them applies: the broker "
        "continues with those it had.",
        "Correct what the line names, check with horolog config check FILE, send SIGHUP again.",
    ),
    "test_clock": Page(
        "The broker was started with --test-clock: every client of its admin port can move its "
        "time. Made for tests.",
        "Never for data that matters: start it without the option.",
    ),
    "crash_loop": Page(
        "The broker has been started several times in a row and each time ended within a minute, "
        "without a proper stop. A request may be the cause, so it serves readers and the API, "
        "but producers receive an error code and retry, and nothing is compacted.",
        "Find the cause: the log's last lines before each start, the kernel's (out of "
        "memory?), the container's exit status. Then POST /api/starts/confirm, or set "
        "horolog.crash.loop.hold.ms to 0, or wait: the hold ends by itself.",
    ),
    "crash_loop_over": Page(
        "The hold after a loop of crashes has ended by itself: records are taken in again."
    ),
    "crash_loop_confirmed": Page(
        "An operator has ended the hold after a loop of crashes: records are taken in again."
    ),
    "starts_unknown": Page(
        "The file of recent starts (horolog-starts-checkpoint) could not be read or "
        "written. A loop of crashes would not be noticed; nothing else depends on it.",
        "Look at the disk: is it full, or failing?",
    ),
    "task_failed": Page(
        "A periodic task ended in an unexpected error; task names it. It runs again at its "
        "next time. horolog_task_failures_total counts it.",
        "If it happens again, this is a fault of the broker: keep the line, and horolog bundle.",
    ),
    "producer_ids_healed": Page(
        "The stored number of the next producer id was beyond all that a broker can give out: an "
        "earlier version accepted an id that a client had made up. Ids continue at 2^40, which "
        "none has reached.",
    ),
    "callback_failed": Page(
        "A callback for one client, group or partition ended in an unexpected error; all others "
        "ran. caller names the code that called it. "
        "horolog_callback_failures_total counts it.",
        "This is a fault of the broker: keep the line, and horolog bundle.",
    ),
    "secret_on_command_line": Page(
        "A secret setting was given by --set: every user of this machine sees it in the list of "
        "processes.",
        "Put it into the file of --config (chmod 600), or give a reference in its place, "
        "${file:PATH:KEY} or ${env:NAME}; then choose another secret.",
    ),
    "admin_change": Page(
        "A line of the security audit (horolog.security.audit.file, or standard error): a client "
        "created, deleted or altered something, or was refused. api, operation, resource and "
        "detail say what, settings with the value before; principal, host, client_id and listener "
        "(or HTTP, SIGHUP, file) say who; outcome is the result. What was refused is written at "
        "once, and again at most once a minute with its count.",
    ),
    "denied": Page(
        "A line of the security audit: a client asked for something that it has no right to. "
        "operation and resource say for what, rule names the ACL that denies it, or that none "
        "allows it. Written at once, and again at most once a minute with its count. What is left "
        "out of lists is no denial. horolog_authorization_denials_total counts them all.",
        "kafka-acls --add gives the right, if it is meant. Many resources from one client are a "
        "program with wrong settings, or a stranger who looks around.",
    ),
    "session_expired": Page(
        "A line of the security audit: a client did not authenticate again before its session "
        "ended (connections.max.reauth.ms, or its token), and sent a request; its connection was "
        "closed.",
        "Clients of Kafka 2.2 and later do it by themselves; look at the client's version.",
    ),
    "audit_gap": Page(
        "A line of the security audit: the file lacks count lines before this one, since it could "
        "not be written. They are in standard error.",
    ),
    "security_audit_failed": Page(
        "The file of the security audit (horolog.security.audit.file) could not be written. "
        "Lines go to standard error until it can, and then the file says how many it lacks "
        "(audit_gap). If standard error is closed, too, changes are refused until one of them "
        "takes lines again: administrative requests close their connection, HTTP answers 503.",
        "Look at the disk of that file: is it full, mounted read-only, owned by another user?",
    ),
    "audit_not_written": Page(
        "Rows of an audit (horolog.audit.topic: who wrote which offsets; "
        "horolog.security.audit.topic) could not be written yet "
        "and wait for the next try. Producers are not affected.",
        "Is the topic there, and does it take records? Rows beyond a bound are counted as others.",
    ),
    "request_failed": Page(
        "A request ended in an unexpected error. Its connection was closed, so its client connects "
        "again; other connections are not affected.",
        "This is a fault of the broker: keep the line with its trace, and horolog bundle.",
    ),
    "rights_not_asked": Page(
        "A request was answered without asking whether its client has the right to it; the answer "
        "was not sent, and the connection was closed.",
        "This is a fault of the broker: keep the line, and horolog bundle.",
    ),
    "library_message": Page(
        "A library that the broker uses (asyncio, aiohttp) logged a message; logger names it.",
        "Errors with a trace are worth a report; others belong to a client's bad connection.",
    ),
    "http_failed": Page(
        "The HTTP port could not begin to serve a connection.",
        "Ask again; if it stays so, look whether files or memory have run out.",
    ),
    "http_request_failed": Page(
        "A request to the admin API ended in an unexpected error; the client received the number "
        "of this event.",
        "This is a fault of the broker: keep the line, and horolog bundle.",
    ),
    "exit-0": Page("The broker stopped as it was asked to; everything is on the disk."),
    "exit-1": Page(
        "Bad settings: an unknown key, an invalid value, two values that contradict each other. "
        "Every mistake has a line with its file and line, variable or flag.",
        "Correct them; horolog config check FILE and horolog config explain KEY help.",
    ),
    "exit-2": Page(
        "Something that the broker needs cannot be used: the data directory (locked by another "
        "process, not writable, of another cluster, of a newer version), a port (taken, not "
        "permitted, not of this machine); or the command line cannot be read.",
        "The line on standard error ends with what to do.",
    ),
    "exit-3": Page(
        "A log is damaged where it may not be, and the broker will not touch it.",
        "horolog verify DIRECTORY shows which and how much. Restore that partition from a backup, "
        "or move its directory away to start without it.",
    ),
    "exit-4": Page(
        "The broker stopped, but something could not be forced to the disk. What was acknowledged "
        "as durable was durable before; records that were not may be lost.",
        "Look at the disk. The next start recovers the logs.",
    ),
    "exit-5": Page(
        "The machine's clock shows a time before this program was written, so every record and "
        "every deletion would be dated wrong.",
        "Set the clock (NTP does that), then start again.",
    ),
    "exit-130": Page(
        "The broker was ended by a second signal, or a command by Ctrl-C.",
        "The next start recovers the logs; give the broker more time to stop.",
    ),
}
