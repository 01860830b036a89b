"""Delegation tokens of a broker, on a simulated disk."""

from typing import cast

from broker.runtime.lanes import DiskLane
from broker.security.delegation.tokens import Tokens
from config.store import ConfigStore
from storage.env import Env
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.worlds.handler_world import LOG_DIR, InlineLanes, settings_layer

SECRET = "a secret of tests"


def tokens_on(env: Env | None = None, secret: str = SECRET, **settings: str) -> Tokens:
    """The tokens that are on the disk of `env`, by default none."""
    if env is None:
        clock = SimClock()
        env = sim_env(0, fs=SimFileSystem(clock=clock), clock=clock)
    if not env.fs.exists(LOG_DIR):
        env.fs.make_dir(LOG_DIR)
        env.fs.sync_dir("/")
    config = ConfigStore([settings_layer({"delegation_token_secret_key": secret, **settings})])
    lane = cast("DiskLane", InlineLanes())
    tokens = Tokens(env, lane, config, lane)
    tokens.load()
    return tokens
