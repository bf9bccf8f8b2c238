"""What came of a set: figures by cell, pack, agent and model, who beats whom, at what cost."""
