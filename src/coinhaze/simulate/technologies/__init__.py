"""Privacy technologies, one per module: the same intents, realised in different ways."""

from coinhaze.simulate.technologies.confidential import CONFIDENTIAL, CONFIDENTIAL_ACCOUNTS
from coinhaze.simulate.technologies.dash import DASH
from coinhaze.simulate.technologies.deposit_pool import DEPOSIT_POOL
from coinhaze.simulate.technologies.joinmarket import JOINMARKET
from coinhaze.simulate.technologies.plain import ACCOUNTS, PLAIN
from coinhaze.simulate.technologies.rings import RINGS
from coinhaze.simulate.technologies.shielded import SHIELDED
from coinhaze.simulate.technologies.stealth import STEALTH, STEALTH_ACCOUNTS
from coinhaze.simulate.technologies.wabisabi import WABISABI
from coinhaze.simulate.technologies.wasabi import WASABI
from coinhaze.simulate.technologies.whirlpool import WHIRLPOOL
from coinhaze.simulate.technology import Technology

_COINS = (
    PLAIN,
    STEALTH,
    CONFIDENTIAL,
    WASABI,
    WABISABI,
    WHIRLPOOL,
    JOINMARKET,
    DASH,
    SHIELDED,
)
_ACCOUNTS_AND_RINGS = (
    ACCOUNTS,
    STEALTH_ACCOUNTS,
    CONFIDENTIAL_ACCOUNTS,
    DEPOSIT_POOL,
    RINGS,
)
TECHNOLOGIES: dict[str, Technology] = {t.name: t for t in (*_COINS, *_ACCOUNTS_AND_RINGS)}
