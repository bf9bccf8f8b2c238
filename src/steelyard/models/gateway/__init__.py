"""The model gateway: programs in a session reach their model without a key and without a network.

`docs/design/gateway.md` says how the rooms fit together.
"""

from steelyard.models.gateway.server import Gateway as Gateway
from steelyard.models.gateway.server import GatewayFault as GatewayFault
from steelyard.models.gateway.tickets import Ticket as Ticket
