"""Documents of a fleet, and the files that a broker alone has them in."""

from broker.fleet.image import SETTINGS
from broker.quotas.quota_file import FILE_NAME as QUOTA_FILE
from broker.quotas.service import DOCUMENT as QUOTAS
from broker.security.acl_file import FILE_NAME as ACL_FILE
from broker.security.authority import DOCUMENT as ACLS
from broker.security.delegation.tokens import DOCUMENT as TOKENS
from broker.security.delegation.tokens_file import FILE_NAME as TOKENS_FILE
from broker.security.users import DOCUMENT as USERS
from broker.security.users_file import FILE_NAME as USER_FILE
from broker.topics.stored_settings import FILE_NAME as SETTINGS_FILE

FILES = {
    SETTINGS: SETTINGS_FILE,
    QUOTAS: QUOTA_FILE,
    USERS: USER_FILE,
    ACLS: ACL_FILE,
    TOKENS: TOKENS_FILE,
}
"""Names of files by those of documents; the content is the same."""
