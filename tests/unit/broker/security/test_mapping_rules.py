"""Rules give the names that Kafka's SslPrincipalMapper gives, or are refused at the start."""

import pytest

from broker.security.mapping_rules import MappingRules

DN = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


@pytest.mark.parametrize(
    ("rules", "dn", "name"),
    [
        ("DEFAULT", DN, DN),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", DN, "Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", DN, "duke"),
        ("RULE:^CN=(.*?), OU=(.*?), O=(.*?), L=(.*?), ST=(.*?), C=(.*?)$/$1@$2/L, DEFAULT", DN, DN),
        ("RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U", "cn=a,ou=b,dc=c,dc=d", "A@B"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L , DEFAULT", DN, "duke"),
        (r"RULE:^CN=(\w+),.*/a\/\$b-$1/", DN, "a/$b-Duke"),
        ("RULE:^CN=(.*?),.*$/$1$9$12/", DN, "Duke$9Duke2"),
        ("RULE:^CN=(.*?),.*$/$0!/", DN, f"{DN}!"),
        ("RULE:.*/x/", DN, "xx"),  # as Java's replaceAll: once for all of it, once for its end
    ],
)
def test_the_first_rule_that_matches_names_the_user(rules: str, dn: str, name: str) -> None:
    assert MappingRules(rules).name_of(dn) == name


def test_who_no_rule_matches_is_refused() -> None:
    with pytest.raises(ValueError, match="no rule"):
        MappingRules("RULE:CN=(.*)/$1/").name_of("O=Org")


@pytest.mark.parametrize(
    "text",
    [
        "", "default", "RULE:x", "RULE:(/x/", r"RULE:\Qx\E/x/", r"RULE:\p{L}/x/", "RULE:[a[b]]/x/",
        "RULE:[a&&b]/x/", "RULE:(?<n>a)/x/", "RULE:(?P<n>a)/x/", "RULE:a/${n}/", "RULE:a/$/",
        "RULE:a/x/X", "RULE:a/x/L DEFAULT", "DEFAULT;DEFAULT", r"RULE:\z/x/",
    ],
)  # fmt: skip
def test_what_java_would_read_otherwise_or_not_at_all_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        MappingRules(text)
