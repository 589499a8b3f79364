"""Tools described by OpenAPI documents."""
