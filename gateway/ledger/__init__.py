"""What files cannot say: registry, journal, identities, keys, tombstones, audit. Nothing outside meets SQLAlchemy."""

from gateway.ledger.database import Ledger, Transaction

__all__ = ["Ledger", "Transaction"]
