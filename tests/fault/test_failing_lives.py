"""Calls to files beside a log that fail once in the life of a broker, as `scripts/prove
failing_disks` has them: what was lost there is written again, and nothing vouches for it before."""

import pytest

from tests.prove.failing_disks import cases_of, kind_of, one_case

MOST_CASES = 12


@pytest.mark.parametrize("kind", [".txnindex", ".txnsum", ".index", ".snapshot"])
@pytest.mark.parametrize("seed", [2, 3])
def test_a_failed_sync_beside_a_log_is_never_believed(kind: str, seed: int) -> None:
    cases, calls = cases_of("transactions", seed)
    chosen = [
        case
        for case in cases
        if calls[case.call - 1][0] == "sync" and kind_of(calls[case.call - 1][1]) == kind
    ]
    assert chosen
    findings = [one_case(case) for case in chosen[:MOST_CASES]]
    assert not any(findings), [each for each in findings if each]
