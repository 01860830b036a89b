"""All delegation tokens there are at one moment; a change makes the next table.

A table carries its rows' texts in the file and their HMACs along, so that a change costs what it
changes, and not what there is.
"""

from collections.abc import Iterable, Mapping

from broker.security.delegation.token import DelegationToken, TokenSecret
from broker.security.delegation.tokens_file import render, row_text


class TokenTable:
    """Tokens by id, and by HMAC those of the broker's secret. Used from any thread."""

    __slots__ = ("_by_hmac", "_rows", "_texts", "secret")

    def __init__(self, secret: TokenSecret, tokens: Iterable[DelegationToken] = ()) -> None:
        """Derives the HMAC of each token."""
        self.secret = secret
        self._rows: dict[str, DelegationToken] = {}
        self._texts: dict[str, str] = {}
        self._by_hmac: dict[bytes, str] = {}
        for each in tokens:
            self.put(each)

    def __len__(self) -> int:
        """Number of tokens, those of other secrets too."""
        return len(self._rows)

    @property
    def rows(self) -> Mapping[str, DelegationToken]:
        """Every token by its id, those of other secrets too."""
        return self._rows

    def is_ours(self, token: DelegationToken) -> bool:
        """True when the broker's secret made it."""
        return self.secret.is_set and token.made_by == self.secret.mark

    def get(self, token_id: str) -> DelegationToken | None:
        """The token of this id, if the broker's secret made it."""
        token = self._rows.get(token_id)
        return token if token is not None and self.is_ours(token) else None

    def by_hmac(self, hmac: bytes) -> DelegationToken | None:
        """The token that this HMAC is the secret of."""
        token_id = self._by_hmac.get(hmac)
        return None if token_id is None else self._rows[token_id]

    def count_of(self, owner: str) -> int:
        """Number of an owner's tokens."""
        return sum(each.owner == owner for each in self._rows.values())

    def with_token(self, token: DelegationToken) -> "TokenTable":
        """The next table, with this one new or changed."""
        after = self._copy()
        after.put(token)
        return after

    def without(self, tokens: Iterable[DelegationToken]) -> "TokenTable":
        """The next table, without these."""
        after = self._copy()
        for each in tokens:
            after.drop(each.token_id)
        return after

    def as_bytes(self) -> bytes:
        """The content of the file."""
        return render(self._texts.values())

    def _copy(self) -> "TokenTable":
        after = TokenTable(self.secret)
        after._rows, after._texts = self._rows.copy(), self._texts.copy()
        after._by_hmac = self._by_hmac.copy()
        return after

    def put(self, token: DelegationToken) -> None:
        """One more, or a changed one: only while the table is made."""
        self._rows[token.token_id] = token
        self._texts[token.token_id] = row_text(token)
        if self.is_ours(token):
            self._by_hmac[self.secret.hmac_of(token.token_id)] = token.token_id

    def drop(self, token_id: str) -> None:
        """One less: only while the table is made."""
        del self._rows[token_id], self._texts[token_id]
        self._by_hmac.pop(self.secret.hmac_of(token_id), None)
