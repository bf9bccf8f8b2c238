"""The schemas of what people write, as pydantic models; `steelyard schema` publishes them."""
