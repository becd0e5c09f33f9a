"""Messages and stubs of the package `session.v1`, generated from its `.proto` files."""
