"""Cipher suites by their IANA names, as Java writes them, and as OpenSSL does."""

SUITES_OF_1_3 = frozenset(
    ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
)
"""Those of TLS 1.3: Python cannot choose among them."""

_EXCHANGES = {"ECDHE_ECDSA": "ECDHE-ECDSA", "ECDHE_RSA": "ECDHE-RSA", "DHE_RSA": "DHE-RSA"}
_CIPHERS = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}
_CBC = {
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
}
OPENSSL_NAMES = {
    f"TLS_{exchange}_WITH_{cipher}": f"{_EXCHANGES[exchange]}-{name}"
    for exchange in _EXCHANGES
    for cipher, name in (_CIPHERS | (_CBC if exchange != "DHE_RSA" else {})).items()
}
"""Those of TLS 1.2 that are served: all have forward secrecy."""


def split(text: str) -> tuple[frozenset[str], list[str]]:
    """Of `ssl.cipher.suites`: those of TLS 1.3, and OpenSSL's names of those of TLS 1.2, in order.

    Raises ValueError for a suite that is not served, or some but not all of TLS 1.3.
    """
    names = [each for each in text.replace(",", " ").split() if each]
    newer = SUITES_OF_1_3.intersection(names)
    unknown = [each for each in names if each not in newer and each not in OPENSSL_NAMES]
    if unknown:
        raise ValueError(
            f"{unknown[0]} is not served; served are "
            f"{', '.join([*sorted(SUITES_OF_1_3), *OPENSSL_NAMES])}"
        )
    if newer and newer != SUITES_OF_1_3:
        missing = ", ".join(sorted(SUITES_OF_1_3 - newer))
        raise ValueError(f"TLS 1.3 is spoken with all three of its suites: add {missing}")
    return newer, [OPENSSL_NAMES[each] for each in names if each not in newer]
