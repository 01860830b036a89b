"""The subject of a certificate as text, letter for letter as Java writes it (RFC 2253).

Kafka's ACLs, quotas and mapping rules compare that text: the last name comes first, nine types have
keywords, the value of every other type is its DER in hexadecimal digits.
"""

from broker.security.der import OID, SEQUENCE, Value, values

MOST_CHARACTERS = 2048
MOST_BYTES = 8 * MOST_CHARACTERS  # more in DER cannot be so few characters

_SET = 0x31
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_TEXT_TAGS = {0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E}  # UTF8, Printable, T61, IA5, General, BMP
_ESCAPED = set(',=+<>#;"\\')
_BLANKS = " \r"


def dn_of(subject: bytes) -> str:
    """The text of a Name in DER. Raises ValueError when it is none, or too long."""
    if len(subject) > MOST_BYTES:
        raise ValueError(f"the name has {len(subject)} bytes, more than {MOST_BYTES}")
    (name,) = values(subject)
    if name.tag != SEQUENCE:
        raise ValueError("a name is a sequence")
    parts = ["+".join(map(_pair, values(_checked(each, _SET)))) for each in values(name.content)]
    text = ",".join(reversed(parts))
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"the name has {len(text)} characters, more than {MOST_CHARACTERS}")
    return text


def _pair(pair: Value) -> str:
    kind, value = values(_checked(pair, SEQUENCE))
    dotted = _dotted(_checked(kind, OID))
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or value.tag not in _TEXT_TAGS:
        return f"{keyword or dotted}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    shown = ["\\00" if each == "\0" else _quoted(each) for each in text]
    begin = len(text) - len(text.lstrip(_BLANKS))
    end = len(text.rstrip(_BLANKS))
    outer = (f"\\{each}" if not begin <= at < end else each for at, each in enumerate(shown))
    return "".join(outer)


def _quoted(character: str) -> str:
    return f"\\{character}" if character in _ESCAPED else character


def _checked(value: Value, tag: int) -> bytes:
    if value.tag != tag:
        raise ValueError(f"a part of a name has tag {value.tag}, not {tag}")
    return value.content


def _dotted(content: bytes) -> str:
    """An object identifier with dots."""
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers or content[-1] & 0x80:
        raise ValueError("an object identifier is cut off")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
