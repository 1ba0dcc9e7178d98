"""The MCP door: tools and resources that call services, with the same keys and the same words as REST."""
