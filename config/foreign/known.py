"""Names that Kafka knows and this version does not serve, with the reason for the user.

Two families. *Not served*: accepting the key would promise something that does not happen, so it is
refused. *Without effect*: it steers machinery that a single node does not have (replication,
thread pools), so a `server.properties` written for Kafka may keep it; it is reported as ignored,
unless its value asks for something that is refused. A name moves out of here when it is served.
"""

import re

_TIER = "the tier is at horolog.tier.url, whose client and metadata are built in"
_TIER_RATES = "the rates of the tier are bounded without windows"
_TIER_RETRIES = "what has failed is tried again in the next round"
_TIER_CACHE = "one cache has indexes and records alike: horolog.tier.cache.bytes"
_REPLICATION = "there is one node: nothing is replicated"
_SECURITY = "no class is loaded by its name"
_SASL = "clients log in by SCRAM, PLAIN or OAUTHBEARER (sasl.enabled.mechanisms), in no other way"
_JWT = "tokens are checked by sasl.oauthbearer.*, and no class is loaded by its name"
_ENGINE = "TLS is OpenSSL's: there is no provider, algorithm or factory to choose"
_QUOTAS = "quotas of users and clients are served, this is not"
_QUORUM = "there is no controller quorum: one process is the whole cluster"
_THREADS = "this broker has an event loop and lanes per disk instead of thread pools"
_BUFFERS = "the system sizes the buffers of each connection by itself"
_NEW_GROUPS = (
    "the protocols of classic, consumer, share and streams groups are always served, by one thread"
)
_GROUP_TIMES = "groups are assigned as soon as that is due"
_GROUP_THREADS = "groups are coordinated on the event loop, and stored with acks=all"
_VERIFIED = "a partition takes no batch of a transaction that it has not joined"
_TWO_PHASES = "two-phase commit (KIP-939) is not served: Kafka has not finished it"
_FORMATS = "records are stored in format 2, and each client gets the format that its version reads"
_JMX = "metrics are served to Prometheus: see horolog.http.listener"

TOPIC_NOT_SERVED = {
    "message.format.version": f"Kafka 4 removed it: {_FORMATS}",
}

_OAUTH_CLASSES = (
    r"jaas\.config$|(server|login)\.callback\.handler\.class$"
    r"|oauthbearer\.jwt\.(retriever|validator)\.class$"
)
_SERVED_SASL = r"enabled\.mechanisms$|server\.max\.receive\.size$"
_OAUTH_KEYS = r"oauthbearer\.(jwks|expected|clock|sub|scope)\."
_OAUTH_PACKAGE = r"(org\.apache\.kafka\.common\.security\.oauthbearer\.(internals\.)?(secured\.)?"
_CHECKS = r"(OAuthBearer(Validator|Login)CallbackHandler|(\w+)Jwt(Validator|Retriever))"
_OF_OAUTH = r"(listener\.name\..+\.oauthbearer\.)?sasl\."

_BROKER_NOT_SERVED = (
    (r"log\.flush\.scheduler\.interval\.ms", "set log.flush.interval.ms alone"),
    (rf"sasl\.(?!{_SERVED_SASL}|{_OAUTH_CLASSES}|{_OAUTH_KEYS}).*", _SASL),
    (rf"listener\.name\.(?!.+\.oauthbearer\.sasl\.({_OAUTH_CLASSES})).+\.sasl\..*", _SASL),
    (r"delegation\.token\.master\.key", "Kafka 4 removed it: set delegation.token.secret.key"),
    (r"principal\..*|authorizer\.(?!class\.name).*", _SECURITY),
    (r"security\.providers", _ENGINE),
    (r"early\.start\.listeners", _SECURITY),
    (
        r"quota\.(?!window\.).*|(?!remote\.log\.|controller\.quota\.window).*\.quota\..*|client\.quota\.callback\.class",
        _QUOTAS,
    ),
    (r"max\.connection\.creation\.rate|max\.connections\.per\.ip\.overrides", _QUOTAS),
    (r"zookeeper\..*", "Kafka 4 removed it"),
    (r"(create|alter)\.(topic|config|log\.dirs).*policy\.class\.name", "it names a Java class"),
)

_ANY = r".*"
_ONE = r"1|-1"
_WITHOUT_EFFECT = (
    (r"log\.message\.format\.version", _ANY, _FORMATS),
    (r"process\.roles", r".*broker.*", _QUORUM),
    (
        r"controller\.(?!listener\.names|quota\.window).*|metadata\..*|node\.pool\.id|initial\.broker\.registration.*",
        _ANY,
        _QUORUM,
    ),
    (r"inter\.broker\.(listener\.name|protocol\.version)|broker\.(session|heart).*", _ANY, _QUORUM),
    (r"security\.inter\.broker\.protocol|ssl\.endpoint\..*", _ANY, _QUORUM),
    (r"ssl\.protocol", r"TLSv1\.[23]|TLS", _ENGINE),
    (r"ssl\.(provider|secure\.random\.implementation|engine\.factory\.class)", r"", _ENGINE),
    (r"ssl\.keymanager\.algorithm", r"SunX509", _ENGINE),
    (r"ssl\.trustmanager\.algorithm", r"PKIX", _ENGINE),
    (rf"{_OF_OAUTH}jaas\.config", rf"{_OAUTH_PACKAGE}OAuthBearerLoginModule)\s.*;", _JWT),
    (rf"{_OF_OAUTH}({_OAUTH_CLASSES.replace('$', '')})", rf"{_OAUTH_PACKAGE}{_CHECKS})", _JWT),
    (r"default\.replication\.factor", _ONE, _REPLICATION),
    (
        r"replica\.(fetch|lag|socket|selector)\..*|num\.replica\..*|leader\.imbalance\..*|auto\.leader\..*",
        _ANY,
        _REPLICATION,
    ),
    (r"unclean\.leader\.election\..*|broker\.rack|fetch\.purgatory\..*", _ANY, _REPLICATION),
    (r"producer\.purgatory\..*|delete\.records\.purgatory\..*", _ANY, _REPLICATION),
    (r"num\.(network|io|recovery)\.threads.*|background\.threads", _ANY, _THREADS),
    (r"socket\.(send|receive)\.buffer\.bytes", _ANY, _BUFFERS),
    (r"queued\.max\.requests", _ANY, _THREADS),
    (r"offsets\.topic\.replication\.factor", _ANY, _REPLICATION),
    (r"(leader|follower)\.replication\.throttled\.rate", _ANY, _REPLICATION),
    (r"replica\.alter\.log\.dirs\.io\..*", _ANY, _REPLICATION),
    (r"offsets\.commit\..*|group\.coordinator\.(threads|append\..*)", _ANY, _GROUP_THREADS),
    (r"group\.coordinator\.(new\.enable|rebalance\.protocols)", _ANY, _NEW_GROUPS),
    (
        r"group\.consumer\.((min\.|max\.)?assignment\..*|assignor\.offload\..*)",
        _ANY,
        _GROUP_TIMES,
    ),
    (
        (
            r"group\.streams\.(?!((min|max)\.)?(session|heartbeat|assignment|standby)\.|num\.|initial\.|max\.size).*"
            r"|group\.share\.(?!((min|max)\.)?(session|heartbeat|assignment|record|delivery|partition)\."
            r"|max\.(size|share\.sessions)|assignors).*"
        ),
        _ANY,
        _NEW_GROUPS,
    ),
    (
        r"share\.coordinator\.(threads|append\..*|write\..*|cached\..*)",
        _ANY,
        _GROUP_THREADS,
    ),
    (r"share\.coordinator\.state\.topic\.(replication\.factor|min\.isr)", _ANY, _REPLICATION),
    (r"transaction\.state\.log\.(replication\.factor|min\.isr)", _ANY, _REPLICATION),
    (r"transaction\.partition\.verification\.enable", r"true", _VERIFIED),
    (r"transaction\.two\.phase\.commit\.enable", r"false", _TWO_PHASES),
    (
        r"remote\.log\.(storage\.manager|metadata)\..*|(rsm|rlmm)\.config\..*",
        _ANY,
        _TIER,
    ),
    (r"remote\.log\.manager\.(copy|fetch)\.quota\.window\..*", _ANY, _TIER_RATES),
    (r"remote\.log\.manager\.task\.retry\..*", _ANY, _TIER_RETRIES),
    (r"remote\.log\.index\.file\.cache\.total\.size\.bytes", _ANY, _TIER_CACHE),
    (r"remote\.log\.manager\.(follower\.)?thread\.pool\.size", _ANY, _REPLICATION),
    (r"metric\.reporters|metrics\..*|auto\.include\.jmx\.reporter", _ANY, _JMX),
    (r"log\.dir\.failure\.timeout\.ms|controlled\.shutdown\..*", _ANY, _REPLICATION),
    (r"unstable\..*|client\.metrics\..*|log4j\..*", _ANY, _JMX),
)

_NOT_SETTINGS = re.compile(
    r"KAFKA_(HEAP_OPTS|OPTS|JMX_OPTS|JMX_PORT|JVM_PERFORMANCE_OPTS|GC_LOG_OPTS|DEBUG"
    r"|LOG4J_.*|TOOLS_LOG4J_.*|HOME|VERSION)"
    r"|(KAFKA|HOROLOG)_(SERVICE_(HOST|PORT.*)|PORT(_\d+_(TCP|UDP).*)?)"
    r"|HOROLOG_(HTTP(_TOKEN|_CA_FILE)?|BOOTSTRAP|COMMAND_CONFIG)"  # for commands
)


def why_topic_key_is_not_served(name: str) -> str | None:
    """The reason when `name` is a topic setting of Kafka that we do not serve."""
    return TOPIC_NOT_SERVED.get(name)


def why_broker_key_is_not_served(name: str) -> str | None:
    """The reason when `name` is a broker setting of Kafka that we do not serve."""
    for pattern, reason in _BROKER_NOT_SERVED:
        if re.fullmatch(pattern, name):
            return reason
    return next((why for pattern, _, why in _WITHOUT_EFFECT if re.fullmatch(pattern, name)), None)


def why_ignored(name: str, text: str) -> str | None:
    """The reason when a file may set `name` to `text` without effect; None when it may not."""
    if any(re.fullmatch(pattern, name) for pattern, _ in _BROKER_NOT_SERVED):
        return None
    for pattern, allowed, reason in _WITHOUT_EFFECT:
        if re.fullmatch(pattern, name):
            return reason if re.fullmatch(allowed, text.strip()) else None
    return None


def is_no_setting(variable: str) -> bool:
    """True for variables that name no setting of the broker.

    Images and Kubernetes set them, or they are for the other commands.
    """
    return _NOT_SETTINGS.fullmatch(variable) is not None
