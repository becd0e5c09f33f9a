"""Evaluates the CEL rules of a custom resource on an object with its defaults, as the API server does."""

import functools

import celpy

RULES = "x-kubernetes-validations"
# Reserved words of CEL: a rule writes a field with such a name between underscores.
RESERVED = {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while"}
REPLACED = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


def field_name(name):
    for old, new in REPLACED:
        name = name.replace(old, new)
    return f"__{name}__" if name in RESERVED else name


def with_defaults(schema, value):
    """Adds the schema's defaults to a value, at every depth."""
    if isinstance(value, dict):
        known = schema.get("properties", {})
        value = {**{name: part["default"] for name, part in known.items() if "default" in part}, **value}
        return {name: with_defaults(part_of(schema, name), part) for name, part in value.items()}
    if isinstance(value, list):
        return [with_defaults(schema.get("items", {}), part) for part in value]
    return value


def part_of(schema, name):
    others = schema.get("additionalProperties")
    return schema.get("properties", {}).get(name) or (others if isinstance(others, dict) else {})


def as_cel(schema, value):
    """Converts a value for CEL: escapes the field names of objects, and keeps the keys of maps."""
    if isinstance(value, dict):
        is_object = "properties" in schema
        parts = {field_name(name) if is_object else name: as_cel(part_of(schema, name), part) for name, part in value.items()}
        return celpy.celtypes.MapType({celpy.celtypes.StringType(name): part for name, part in parts.items()})
    if isinstance(value, list):
        return celpy.celtypes.ListType([as_cel(schema.get("items", {}), part) for part in value])
    return celpy.json_to_cel(value)


@functools.cache
def program(rule):
    environment = celpy.Environment()
    return environment.program(environment.compile(rule))


def is_kept(rule, value):
    try:
        return bool(program(rule).evaluate({"self": value}))
    except celpy.CELEvalError:  # the API server rejects an object if a rule's evaluation fails
        return False


def walk(schema, value, path=()):
    """Yields each rule that the value breaks: (path, message)."""
    for rule in schema.get(RULES, []):
        if not is_kept(rule["rule"], as_cel(schema, value)):
            yield ".".join(path), rule.get("message", rule["rule"])
    if isinstance(value, dict):
        for name, part in value.items():
            yield from walk(part_of(schema, name), part, (*path, name))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from walk(schema.get("items", {}), part, (*path, str(at)))


def broken(schema, item):
    """Lists the rules in its kind's schema that a manifest breaks."""
    return list(walk(schema, with_defaults(schema, item)))
