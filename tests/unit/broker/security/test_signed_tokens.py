"""Tokens: which hold, whose they are and until when; and every forged one that must not hold."""

import json
import time
import tracemalloc
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from broker.security.sasl.exchange import Proof
from broker.security.sasl.jwks import SigningKeys, read_keys
from broker.security.sasl.oauthbearer import BadToken, UnknownKey
from broker.security.sasl.signed_tokens import TokenRules
from config.security.oauth import OauthConfig
from tests.support.clients.issuer import AUDIENCE, NAME, Issuer, SigningKey, key_of, raw_token

NOW = 1_790_000_000
CONFIG = OauthConfig(
    jwks_endpoint_url="https://x/", expected_issuer=NAME, expected_audience=("other", AUDIENCE)
)
KEY = key_of()
ISSUER = Issuer(KEY, now=lambda: NOW)


def keys_of(*keys: SigningKey) -> SigningKeys:
    return read_keys(json.dumps(Issuer(*keys).published).encode())


KEYS = keys_of(KEY)


def rules(**settings: Any) -> TokenRules:
    values = {name: getattr(CONFIG, name) for name in CONFIG.__slots__}
    return TokenRules(OauthConfig(**(values | settings)), lambda: NOW * 1000 + 999)


def test_a_good_token_names_its_user_and_its_end() -> None:
    expected = Proof("alice", None, ends_ms=(NOW + 300) * 1000)
    assert rules().holder(ISSUER.token(), KEYS) == expected


@pytest.mark.parametrize(
    ("kind", "size", "alg"),
    [
        ("RSA", None, "RS256"), ("RSA", None, "RS512"), ("RSA", 3072, "PS256"),
        ("EC", "P-256", "ES256"), ("EC", "P-384", "ES384"), ("EC", "P-521", "ES512"),
        ("OKP", "Ed25519", "EdDSA"), ("OKP", "Ed25519", "Ed25519"), ("OKP", "Ed448", "Ed448"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_the_asymmetric_algorithms_of_the_set(kind: str, size: Any, alg: str) -> None:
    key = key_of(kind, size=size)
    issuer = Issuer(key, now=lambda: NOW)
    assert rules().holder(issuer.token(alg=alg), keys_of(key)).user == "alice"
    with pytest.raises(BadToken):
        rules().holder(issuer.token(alg=alg), KEYS)


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": ["elsewhere", AUDIENCE]}, {"aud": "other"}, {"seconds": -29}, {"nbf": NOW + 29},
        {"scope": None}, {"scope": ["a", "b"]}, {"scope": 7}, {"exp": NOW + 0.5},
        {"header": {"typ": "at+jwt", "x5t": "abc", "nonce": "x"}}, {"header": {"kid": None}},
    ],
)  # fmt: skip
def test_what_providers_vary(changes: dict[str, Any]) -> None:
    assert rules().holder(ISSUER.token(**changes), KEYS).user == "alice"


BAD_CLAIMS: list[dict[str, Any]] = [
    {"iss": "https://issuer.test/"}, {"iss": None}, {"iss": [NAME]}, {"iss": {"a": 1}},
    {"aud": "stranger"}, {"aud": None}, {"aud": []}, {"aud": [AUDIENCE, 1]}, {"aud": "horolo"},
    {"seconds": -31}, {"exp": None}, {"exp": str(NOW + 9)}, {"exp": True}, {"exp": [NOW + 9]},
    {"iat": None}, {"iat": NOW + 31}, {"iat": "now"}, {"nbf": NOW + 31}, {"nbf": "later"},
    {"sub": None}, {"sub": ""}, {"sub": " "}, {"sub": 7}, {"sub": ["alice"]}, {"sub": "x" * 2049},
    {"scope": ["a", "a "]}, {"scope": [1]}, {"scope": ["", "b"]}, {"scope": " "},
]  # fmt: skip


@pytest.mark.parametrize("changes", BAD_CLAIMS, ids=str)
def test_claims_that_do_not_hold(changes: dict[str, Any]) -> None:
    with pytest.raises(BadToken):
        rules().holder(ISSUER.token(**changes), KEYS)


def test_the_user_may_be_another_claim() -> None:
    by_client = rules(sub_claim_name="client_id")
    assert by_client.holder(ISSUER.token(client_id="app"), KEYS).user == "app"
    assert by_client.holder(ISSUER.token(client_id=" app ", sub=None), KEYS).user == "app"
    for name in ("now", "leeway"):
        assert rules(sub_claim_name=name).holder(ISSUER.token(**{name: "x"}), KEYS).user == "x"
    with pytest.raises(BadToken, match="subject"):
        by_client.holder(ISSUER.token(), KEYS)


@pytest.mark.parametrize("exp", [10**18, 10**400, 1e300])
def test_a_far_end_is_the_end_of_the_year_9999(exp: Any) -> None:
    ends_ms = rules().holder(ISSUER.token(exp=exp), KEYS).ends_ms
    assert ends_ms is not None
    assert ends_ms < 2**62


def public_pem() -> bytes:
    return KEY.as_pem(private=False)


def with_secret(secret: bytes, alg: str = "HS256") -> str:
    """Signed with what everybody can read."""
    header, key = {"alg": alg, "kid": KEY.kid}, OctKey.import_key(secret)
    return jwt.encode(header, ISSUER.claims(), key, algorithms=[alg])


CLAIMS = ISSUER.claims()
AS_TEXT = json.dumps(CLAIMS).encode()
HEADER = {"alg": "ES256", "kid": "one"}
FORGED = {
    "no signature": lambda: raw_token({"alg": "none"}, CLAIMS),
    "no signature, with kid": lambda: raw_token({"alg": "none", "kid": "one"}, CLAIMS),
    "None": lambda: raw_token({"alg": "None", "kid": "one"}, CLAIMS),
    "alg is a list": lambda: raw_token({"alg": ["ES256"], "kid": "one"}, CLAIMS),
    "alg is null": lambda: raw_token({"alg": None, "kid": "one"}, CLAIMS),
    "no alg": lambda: raw_token({"kid": "one"}, CLAIMS),
    "empty signature": lambda: raw_token(HEADER, CLAIMS),
    "zeros": lambda: raw_token(HEADER, CLAIMS, bytes(64)),
    "public key as secret": lambda: with_secret(public_pem().strip()[27:-25]),
    "jwk as secret": lambda: with_secret(json.dumps(KEY.as_dict(private=False)).encode(), "HS512"),
    "own key in header": lambda: ISSUER.token(
        key=STRANGER, header={"kid": "one", "jwk": STRANGER.as_dict(private=False)}
    ),
    "jku": lambda: ISSUER.token(key=STRANGER, header={"kid": "one", "jku": "https://evil/keys"}),
    "x5u": lambda: ISSUER.token(key=STRANGER, header={"kid": "one", "x5u": "https://evil/c"}),
    "x5c": lambda: ISSUER.token(key=STRANGER, header={"kid": "one", "x5c": ["AAAA"]}),
    "crit": lambda: ISSUER.token(header={"crit": ["typ"], "typ": "JWT"}),
    "payload of another": lambda: spliced(ISSUER.token(), ISSUER.token("bob")),
    "two parts": lambda: ISSUER.token().rpartition(".")[0],
    "five parts": lambda: ISSUER.token() + ".a.b",
    "no parts": lambda: "abc",
    "padding": lambda: ISSUER.token() + "=",
    "claims are a list": lambda: signed_text(b'["sub"]'),
    "claims are no JSON": lambda: signed_text(b"{"),
    "claim is there twice": lambda: signed_text(AS_TEXT[:-1] + b',"sub":"bob"}'),
    "NaN": lambda: signed_text(json.dumps({**CLAIMS, "exp": float("nan")}).encode()),
    "infinity": lambda: signed_text(json.dumps({**CLAIMS, "exp": float("inf")}).encode()),
    "deep claims": lambda: signed_text(b'{"a":' + b"[" * 40_000 + b"]" * 20_000 + b"}"),
    "deep header": lambda: raw_token(b'{"alg":' + b"[" * 5_000, CLAIMS, bytes(64)),
    "long number": lambda: signed_text(b'{"exp":' + b"9" * 45_000 + b"}"),
    "huge header": lambda: ISSUER.token(header={"cty": "x" * 9000}),
    "huge claims": lambda: ISSUER.token(more="x" * 70_000),
    "huge signature": lambda: raw_token(HEADER, CLAIMS, bytes(9000)),
    "header is a list": lambda: raw_token(["alg"], CLAIMS, bytes(64)),
    "header is text": lambda: raw_token("alg", CLAIMS, bytes(64)),
    "kid is a number": lambda: raw_token({"alg": "ES256", "kid": 1}, CLAIMS, bytes(64)),
    "crit is a number": lambda: raw_token({**HEADER, "crit": 1}, CLAIMS, bytes(64)),
    "another curve": lambda: ISSUER.token(key=key_of(size="P-384"), alg="ES384"),
}  # fmt: skip
STRANGER = key_of(kid="one")


def spliced(token: str, other: str) -> str:
    header, _, signature = token.split(".")
    return ".".join((header, other.split(".")[1], signature))


def signed_text(payload: bytes) -> str:
    """A payload that only the issuer can have signed."""
    from joserfc import jws

    return jws.serialize_compact(HEADER, payload, KEY, algorithms=["ES256"])


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_token_does_not_hold_and_costs_little(name: str) -> None:
    token, judge = FORGED[name](), rules().holder
    tracemalloc.start()
    with pytest.raises(BadToken) as refused:
        judge(token, KEYS)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    began = time.thread_time()
    with pytest.raises(BadToken):
        judge(token, KEYS)
    seconds = time.thread_time() - began
    assert seconds < 0.1
    assert peak_bytes < 4 * 1024 * 1024
    assert len(str(refused.value)) < 300
    assert token[:40] not in str(refused.value)


def test_payload_that_is_not_encoded_is_not_a_token() -> None:
    """RFC 7797: what was signed would be another text than what is read."""
    header = {**HEADER, "b64": False, "crit": ["b64"]}
    with pytest.raises(BadToken):
        rules().holder(raw_token(header, CLAIMS, bytes(64)), KEYS)


def test_a_key_that_is_not_known_is_told_apart() -> None:
    token = ISSUER.token(key=key_of(kid="two"))
    with pytest.raises(UnknownKey):
        rules().holder(token, KEYS)
    with pytest.raises(UnknownKey):
        rules().holder(token, None)


def test_a_token_without_kid_is_that_of_the_only_key_for_its_algorithm() -> None:
    rsa, other = key_of("RSA", "rsa"), key_of(kid="other")
    token = ISSUER.token(header={"kid": None})
    assert rules().holder(token, keys_of(rsa, KEY)).user == "alice"
    for keys in (keys_of(other, KEY), keys_of(rsa)):
        with pytest.raises(BadToken):
            rules().holder(token, keys)


def test_a_key_signs_by_its_own_algorithm_alone() -> None:
    key = key_of("RSA")
    issuer = Issuer(key, now=lambda: NOW)
    told = {**key.as_dict(private=False), "alg": "RS256"}
    keys = read_keys(json.dumps({"keys": [told]}).encode())
    assert rules().holder(issuer.token(alg="RS256"), keys).user == "alice"
    with pytest.raises(BadToken):
        rules().holder(issuer.token(alg="RS512"), keys)


def test_unsecured_tokens_hold_without_a_signature_and_no_others() -> None:
    unsecured = TokenRules(OauthConfig(), lambda: NOW * 1000, is_unsecured=True)
    token = raw_token({"alg": "none"}, {"sub": "alice", "exp": NOW + 5.5, "iat": NOW - 0.5})
    assert unsecured.holder(token, None) == Proof("alice", None, ends_ms=NOW * 1000 + 5500)
    for other in (ISSUER.token(), raw_token({"alg": "none"}, {"sub": "alice"}), token + "eA"):
        with pytest.raises(BadToken):
            unsecured.holder(other, None)
