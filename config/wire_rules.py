"""Settings of the broker that a client may not change while it runs, with the reasons: one table.

Everyone who reaches a client's port can send IncrementalAlterConfigs. So a key that decides who may
connect or administrate, where the data is or how much memory clients may take comes from the file,
the environment or a flag alone; a flag (`--set`) is above everything that is set at run time; and
some keys that may change have a narrower range on the wire.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from config.declare import keys_of
from config.errors import ConfigRequestError
from config.layers import Layer, Setting, is_pinned
from config.listener_keys import renewed_listener
from config.names import broker_name
from config.security.oauth import OauthConfig
from config.security.tls import RENEWABLE

_GETS_IN = "one wrong request would lock everybody out, over restarts"
_ADMINISTRATES = "any client of the port could make itself an administrator"
_BELONGS = "the data directory belongs to it: its data would be out of sight"
_FORBIDS = "what an operator has forbidden a client cannot allow"
_TRACES = "who is watched could end the watching"
_BELIEVES = "whom the broker believes, and where it connects to, no client decides"
_MEMORY = "strangers could take more memory than the machine has"

FIXED: Mapping[str, str] = MappingProxyType(
    {
        "log.dirs": _BELONGS,
        "cluster.id": _BELONGS,
        "node.id": _BELONGS,
        "listeners": _GETS_IN,
        "listener.security.protocol.map": _GETS_IN,
        "advertised.listeners": _GETS_IN,
        "horolog.published.listeners": _GETS_IN,
        "controller.listener.names": _GETS_IN,
        "horolog.admin.listener.name": _GETS_IN,
        "horolog.http.listener": _ADMINISTRATES,
        "horolog.http.security.protocol": _ADMINISTRATES,
        "horolog.http.token.file": _ADMINISTRATES,
        "horolog.http.hosts": _ADMINISTRATES,
        "auto.create.topics.enable": _FORBIDS,
        "delete.topic.enable": _FORBIDS,
        "horolog.audit.topic": _TRACES,
        "horolog.security.audit.file": _TRACES,
        "horolog.security.audit.topic": _TRACES,
        "horolog.sasl.oauthbearer.unsecured": _BELIEVES,
        "horolog.tier.url": _BELIEVES,
        "horolog.tier.allow.http": _BELIEVES,
        **{key.name: _BELIEVES for key in keys_of(OauthConfig)},
        "socket.request.max.bytes": _MEMORY,
        "queued.max.request.bytes": _MEMORY,
        "horolog.queued.max.response.bytes": _MEMORY,
        "fetch.max.bytes": _MEMORY,
        "horolog.max.groups": _MEMORY,
        "horolog.group.members.max.bytes": _MEMORY,
        "horolog.max.committed.offsets": _MEMORY,
        "horolog.max.transactional.ids": _MEMORY,
        "horolog.max.transaction.partitions": _MEMORY,
    }
)
"""Keys that may only come from file, environment or flags, and why. All others that do not change
at run time are merely read once.
"""

LEAST_ON_WIRE: Mapping[str, int] = MappingProxyType({"horolog.clock.hold.ms": 60_000})
"""Smallest values that a client may set: less would let a wrong clock remove records at once."""


def why_fixed(name: str) -> str:
    """The reason why a running broker does not take a new value of `name` from a client."""
    if name in RENEWABLE:
        return f"a certificate is renewed for one listener: listener.name.NAME.{name}"
    reason = next((FIXED[key.name] for key in broker_name(name).keys if key.name in FIXED), None)
    return f"{reason}; set it in the file or by a flag" if reason else "it is read at start"


def check_of_every_broker(before: Mapping[str, Setting], after: Mapping[str, Setting]) -> None:
    """ConfigRequestError for a certificate that every broker would show (as Kafka)."""
    for name, setting in after.items():
        was = before.get(name)
        if renewed_listener(name) and (was is None or was.text != setting.text):
            raise ConfigRequestError(
                name, f"{name} is a setting of one broker: name the broker, not the default of all"
            )


def check_changes(
    before: Mapping[str, Setting], after: Mapping[str, Setting], static: Sequence[Layer]
) -> None:
    """ConfigRequestError naming a changed key that has a flag, or a value that needs more than a
    client. What is stored may always be taken back.
    """
    for name, setting in after.items():
        was = before.get(name)
        if was is not None and was.text == setting.text:
            continue
        if any(is_pinned(key, static) for key in broker_name(name).keys):
            raise ConfigRequestError(
                name,
                f"{name} is set by a flag of the broker's start (--set), which wins over what is "
                "set at run time: change the flag",
            )
        least = LEAST_ON_WIRE.get(name)
        if least is not None and setting.value < least:
            raise ConfigRequestError(
                name,
                f"{name}: a client may set {least} or more, not {setting.value}; less needs the "
                "file or a flag",
            )


def fixed_table() -> str:
    """Markdown, for operators."""
    rows = "".join(f"| `{name}` | {reason} |\n" for name, reason in FIXED.items())
    least = "".join(
        f"| `{name}` below {value} | a wrong clock could remove records at once |\n"
        for name, value in LEAST_ON_WIRE.items()
    )
    return f"| not by clients | because |\n|---|---|\n{rows}{least}"
