"""Takes secrets out of text that is to be shown to others: known ones, and what looks like one.

Known are texts that were given (a token that was read from its file). What looks like one: the
value behind a name such as password, secret, token or credential, the word after Bearer or Basic,
the user and password of an address, a private key. Rather too much goes than too little.
"""

import re
from collections.abc import Iterable

HIDDEN = "***"
LEAST_SECRET = 4
"""A shorter text is no secret that can be looked for."""

_NAMED = re.compile(
    r"""(?ix)
    ( (?: passw(?:or)?d | passphrase | secret | token | credential | api[_.-]?key | jaas[.]config )
      [\w.-]* ["']? \s* [=:] \s* )
    ( "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | [^\s,;"'}]+ )
    """
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]+")
_ADDRESS = re.compile(r"://[^/\s@\"']+@")
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)", re.DOTALL)


class Redactor:
    """Hides secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets` are hidden wherever they stand; those of fewer than 4 signs cannot be."""
        self._known = sorted(
            {each for each in secrets if len(each) >= LEAST_SECRET}, key=len, reverse=True
        )

    def hide(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        text = _KEY.sub(HIDDEN, text)
        text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
        text = _ADDRESS.sub(f"://{HIDDEN}@", text)
        return _NAMED.sub(_value_hidden, text)


def _value_hidden(match: re.Match[str]) -> str:
    """Quotes stay, so that JSON stays JSON."""
    quote = match[2][0] if match[2][0] in "\"'" else ""
    return f"{match[1]}{quote}{HIDDEN}{quote}"
