"""The REST door: parse, authenticate, call one service, answer."""
