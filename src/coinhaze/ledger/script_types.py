"""Types of output scripts, by the scripts themselves or by the addresses that stand for them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# A type is stored as its place here. An unknown one is that of a coin whose source gives neither
# its script nor an address; another is a script of none of the types.
SCRIPT_TYPES = (
    "unknown", "p2pk", "p2pkh", "p2sh", "p2wpkh", "p2wsh", "p2tr", "multisig", "other",
)  # fmt: skip
UNKNOWN, P2PK, P2PKH, P2SH, P2WPKH, P2WSH, P2TR, MULTISIG, OTHER = range(len(SCRIPT_TYPES))

Codes = npt.NDArray[np.uint8]

# How addresses of the networks known here look, in the order of how many coins have them. Several
# addresses joined are the keys of a bare multisig.
_HRP = "(?:bc|tb|bcrt|ltc|tltc)1"
_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
_FORMS = (
    (P2PKH, f"^(?:[1mnLDXy]|t1|tm){_BASE58}{{24,34}}$"),
    (P2SH, f"^(?:[32MQA789]|t3|t2){_BASE58}{{24,34}}$"),
    (P2WPKH, f"^{_HRP}q[02-9ac-hj-np-z]{{38}}$"),
    (P2TR, f"^{_HRP}p[02-9ac-hj-np-z]{{58}}$"),
    (P2WSH, f"^{_HRP}q[02-9ac-hj-np-z]{{58}}$"),
    (MULTISIG, "^[1-9A-HJ-NP-Za-km-z]+(?:,[1-9A-HJ-NP-Za-km-z]+)+$"),
)


def types_of_owners(owners: pa.StringArray) -> Codes:
    """Give the types of the scripts that pay to owners, by the form of their addresses.

    An address of a key's hash also names coins that pay to the key itself: both are p2pkh here.

    >>> found = types_of_owners(pa.array(["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "alice", None]))
    >>> [SCRIPT_TYPES[code] for code in found]
    ['p2pkh', 'unknown', 'unknown']
    """
    codes = np.zeros(len(owners), dtype=np.uint8)
    left = np.arange(len(owners))  # an owner has one form at most
    for code, form in _FORMS:
        if not len(left):
            break
        matches = pc.match_substring_regex(owners.take(pa.array(left)), form).fill_null(False)
        found = matches.to_numpy(zero_copy_only=False).astype(np.bool_)
        codes[left[found]] = code
        left = left[~found]
    return codes
