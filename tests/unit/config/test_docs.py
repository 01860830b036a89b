"""Generated texts: they hold every key, and the committed files are current."""

from pathlib import Path

from config.docs import broker_table, example_yaml, topic_table, with_section
from config.names import BROKER_KEYS, TOPIC_KEYS
from config.sources import load
from config.store import ConfigStore

ROOT = Path(__file__).resolve().parents[3]


def test_the_example_file_is_current() -> None:
    assert (ROOT / "config" / "server.yaml").read_text() == example_yaml()


def test_the_example_file_without_its_comment_signs_sets_every_key_to_its_default(
    tmp_path: Path,
) -> None:
    lines = [
        line[1:] for line in example_yaml().splitlines() if line[:1] == "#" != line[1:2] != " "
    ]
    path = tmp_path / "all.yaml"
    path.write_text("\n".join(line for line in lines if not line.startswith(" ")))
    loaded = load(environment={}, file=str(path))
    settings = loaded.layers[-1].settings
    on_broker = {key.broker_name for key in (*BROKER_KEYS, *TOPIC_KEYS) if key.on_broker}
    assert on_broker == set(settings)
    assert ConfigStore(loaded.layers).broker_config == ConfigStore().broker_config
    assert ConfigStore(loaded.layers).topic_defaults == ConfigStore().topic_defaults


def test_every_key_has_a_row() -> None:
    for key in TOPIC_KEYS:
        on_broker = f"`{key.broker_name}`" if key.on_broker else "none"
        assert f"| `{key.name}` | {on_broker} |" in topic_table()
    for key in BROKER_KEYS:
        assert f"| `{key.name}` |" in broker_table()


def test_a_section_between_marks_is_replaced_and_nothing_else() -> None:
    text = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n"
    assert with_section(text, "x", "new\n") == "a\n<!-- x -->\nnew\n<!-- end of x -->\nb\n"
    assert with_section(text, "y", "new\n") == text
