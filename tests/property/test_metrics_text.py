"""Whatever labels and numbers hold, what a scrape says is read back by the metrics library."""

import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from broker.metrics.text import SLICE_SAMPLES, buckets, header, plain

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SAMPLES = st.dictionaries(st.tuples(TEXTS, TEXTS), st.floats(), max_size=5)


@given(SAMPLES, TEXTS.filter(lambda text: text == text.strip()))
def test_a_gauge_comes_back(samples: dict[tuple[str, ...], float], described: str) -> None:
    text = header("horolog_x", "gauge", f"About {described}.")
    text += "".join(plain("horolog_x", ("topic", "group"), samples.items()))
    (family,) = text_string_to_metric_families(text)
    found = {(s.labels["topic"], s.labels["group"]): s.value for s in family.samples}
    assert found.keys() == samples.keys()
    for key, value in samples.items():
        assert found[key] == value or (math.isnan(found[key]) and math.isnan(value))
    assert family.type == "gauge"


@given(TEXTS, st.lists(st.integers(0, 1 << 40), min_size=1, max_size=5))
def test_a_histogram_comes_back(topic: str, counts: list[int]) -> None:
    bounds = [*(str(float(bound)) for bound in range(len(counts) - 1)), "+Inf"]
    sums = [float(sum(counts[: end + 1])) for end in range(len(counts))]
    shown = list(zip(bounds, sums, strict=True))
    text = header("horolog_x", "histogram", "x") + buckets(
        "horolog_x", ("topic",), (topic,), shown, 7.5
    )
    (family,) = text_string_to_metric_families(text)
    found = [s for s in family.samples if s.name.endswith("_bucket")]
    assert [(s.labels["le"], s.value) for s in found] == shown
    (total,) = [s for s in family.samples if s.name.endswith("_sum")]
    (count,) = [s for s in family.samples if s.name.endswith("_count")]
    assert (total.value, count.value) == (7.5, sums[-1])
    assert total.labels == count.labels == {"topic": topic}


def test_many_samples_come_in_slices() -> None:
    many = [((str(number),), float(number)) for number in range(2 * SLICE_SAMPLES + 1)]
    slices = list(plain("horolog_x", ("n",), many))
    assert len(slices) == 3
    assert "".join(slices).count("\n") == len(many)
    assert "".join(plain("horolog_x", (), [])) == ""
