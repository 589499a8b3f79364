"""OpenAPI documents: which of their operations become tools, with which arguments."""

from typing import Any

import pytest

from mutations import within
from toolbox.openapi.document import OpenApiDocument, OpenApiOperation
from work_count import count_work

Json = dict[str, Any]
URL = "https://api.example.com/docs/openapi.json"
TEXT = {"type": "string"}


def operations(paths: Json, **more: Any) -> list[OpenApiOperation]:
    """The operations of a document."""
    base_url = more.pop("base_url", "")
    content = {"openapi": "3.1.0", "paths": paths, **more}
    return list(OpenApiDocument(content, URL, base_url).operations())


def operation(said: Json, path: str = "/look", **more: Any) -> OpenApiOperation:
    """The one operation of a document."""
    [found] = operations({path: {"post": {"operationId": "look", **said}}}, **more)
    return found


def parameter(name: str, place: str, **more: Any) -> Json:
    """A parameter as a document describes it."""
    return {"name": name, "in": place, "schema": TEXT, **more}


def sent_as_json(schema: Any, **more: Any) -> Json:
    """A body as a document describes it."""
    return {
        "requestBody": {"content": {"application/json": {"schema": schema}}, **more}
    }


# ---------------------------------------------------------------- operations


def test_each_method_of_each_path_is_a_tool() -> None:
    """With its own name, or one made of method and path."""
    found = operations(
        {
            "/a": {"get": {"operationId": "listA", "summary": "Lists."}, "post": {}},
            "/a/{b}": {
                "parameters": [parameter("b", "path")],
                "delete": {"description": "Deletes."},
                "head": {"operationId": "no"},
            },
        }
    )

    assert [(one.method, one.spec.own_name, one.url) for one in found] == [
        ("GET", "listA", "https://api.example.com/a"),
        ("POST", "post_a", "https://api.example.com/a"),
        ("DELETE", "delete_a/{b}", "https://api.example.com/a/{b}"),
    ]
    assert [one.spec.description for one in found] == ["Lists.", "", "Deletes."]


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"openapi": "2.0", "paths": {}},
        {"swagger": "2.0", "paths": {}},
        {"openapi": "3.0.0"},
        {"openapi": "3.0.0", "paths": []},
        [],
        None,
    ],
)
def test_other_documents_are_refused(content: object) -> None:
    """Version 3 alone."""
    with pytest.raises(ValueError, match="version 3"):
        list(OpenApiDocument(content, URL).operations())


USELESS: dict[str, Json] = {
    "a body that has to be a file": {
        "requestBody": {"required": True, "content": {"multipart/form-data": {}}}
    },
    "a reference to elsewhere": {"parameters": [{"$ref": "https://evil.test/p.json"}]},
    "a reference to nothing": sent_as_json({"$ref": "#/components/schemas/Gone"}),
    "a file as reference": sent_as_json({"$ref": "file:///etc/passwd"}),
    "a reference to itself": {"parameters": [{"$ref": "#/components/a"}]},
    "a schema that is too large": sent_as_json({"description": "x" * 60_000}),
    "another host": {"servers": [{"url": "https://evil.test"}]},
    "another port": {"servers": [{"url": "//api.example.com:8443"}]},
    "another scheme": {"servers": [{"url": "http://api.example.com/"}]},
    "a user at another host": {"servers": [{"url": "//api.example.com@evil.test"}]},
    "a host in a variable": {
        "servers": [
            {"url": "https://{h}", "variables": {"h": {"default": "evil.test"}}}
        ]
    },
    "a broken address": {"servers": [{"url": "https://[/"}]},
}


@pytest.mark.parametrize("case", USELESS)
def test_operation_that_cannot_be_called_is_left_out(case: str) -> None:
    """The others go on."""
    paths = {"/a": {"get": USELESS[case]}, "/b": {"get": {"operationId": "b"}}}
    components = {"a": {"$ref": "#/components/b"}, "b": {"$ref": "#/components/a"}}

    found = operations(paths, components=components)

    assert [one.spec.own_name for one in found] == ["b"]


@pytest.mark.parametrize("path", ["no", "/a?b={c}", "/a#b", "/a/{missing}", ""])
def test_path_that_is_none_is_left_out(path: str) -> None:
    """A question mark in it would hide what comes after."""
    assert operations({path: {"get": {}}}) == []


BASES = [
    ([], "https://api.example.com/look"),
    ([{"url": "/v2/"}], "https://api.example.com/v2/look"),
    ([{"url": "v2"}], "https://api.example.com/docs/v2/look"),
    ([{"url": "https://api.example.com/v3"}], "https://api.example.com/v3/look"),
    (
        [{"url": "https://API.example.com:443/v3?a=b"}],
        "https://api.example.com/v3/look",
    ),
    (
        [{"url": "/{v}", "variables": {"v": {"default": "v4"}}}, {"url": "/other"}],
        "https://api.example.com/v4/look",
    ),
]


@pytest.mark.parametrize(("servers", "url"), BASES)
def test_document_chooses_the_path_alone(servers: list[Json], url: str) -> None:
    """Host and port are those of the address that the administrator named."""
    assert operation({}, servers=servers).url == url


def test_servers_of_an_operation_win() -> None:
    """Over those of its path, over those of the document."""
    said = {"servers": [{"url": "/mine"}]}

    assert operation(said, servers=[{"url": "/all"}]).url.endswith("/mine/look")


def test_administrator_may_name_another_host() -> None:
    """Whatever the document says."""
    evil = [{"url": "https://evil.test/x"}]
    said = {"servers": evil}

    found = operation(said, servers=evil, base_url="https://own.example.com/v1/?a=b")

    assert found.url == "https://own.example.com/v1/look"


# ---------------------------------------------------------------- arguments


def test_parameters_and_body_are_arguments() -> None:
    """A parameter of an operation takes the place of its path's."""
    body = {"type": "object", "properties": {"deep": {"type": "integer"}}}
    said = {
        "parameters": [
            parameter("city", "query", required=True, description="Where."),
            parameter("X-Unit", "header"),
            parameter("filter", "query", content={"application/json": {"schema": {}}}),
        ],
        **sent_as_json(body, required=True),
    }
    inherited = [parameter("city", "query"), parameter("id", "path")]
    [found] = operations(
        {"/{id}": {"parameters": inherited, "put": {"operationId": "look", **said}}}
    )

    assert found.spec.args == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "id": TEXT,
            "X-Unit": TEXT,
            "filter": TEXT,
            "body": body,
        },
        "required": ["id", "city", "body"],
    }
    assert found.body == "body"


def test_equal_names_are_told_apart() -> None:
    """By where they go."""
    said = {
        "parameters": [
            parameter("id", "path"),
            parameter("id", "query"),
            parameter("body", "query"),
        ],
        **sent_as_json(TEXT),
    }

    found = operation(said, "/{id}")

    assert list(found.spec.args["properties"]) == [
        "id",
        "query_id",
        "body",
        "request_body",
    ]
    assert found.body == "request_body"


SECRETS = ["Authorization", "X-API-Key", "Cookie", "x-auth", "X-Forwarded-For", "Host"]


@pytest.mark.parametrize("name", SECRETS)
def test_model_does_not_choose_headers_that_open_doors(name: str) -> None:
    """Nor cookies, nor what the document says is a key."""
    said = {
        "parameters": [
            parameter(name, "header", required=True),
            parameter("session", "cookie"),
            parameter("code", "query"),
            parameter("page", "query"),
        ]
    }
    schemes = {"k": {"type": "apiKey", "in": "query", "name": "Code"}, "x": "y"}

    found = operation(said, components={"securitySchemes": schemes})

    assert list(found.spec.args["properties"]) == ["page"]
    assert found.spec.args["required"] == []


def test_references_stand_beside_the_schema() -> None:
    """Also one that leads back to itself; two of one name are told apart."""
    schemas: Json = {
        "Tree": {
            "type": "object",
            "properties": {
                "inner": {"$ref": "#/components/schemas/Tree"},
                "other": {"$ref": "#/x-more/Tree"},
            },
        },
    }
    body = sent_as_json({"$ref": "#/components/schemas/Tree"})
    referred = {"requestBody": {"$ref": "#/components/requestBodies/a~1b"}}
    components = {"schemas": schemas, "requestBodies": {"a/b": body["requestBody"]}}

    more: Json = {"x-more": {"Tree": TEXT}}

    found = operation(referred, components=components, **more)

    tree = {"$ref": "#/$defs/Tree"}
    assert found.spec.args["properties"] == {"body": tree}
    assert found.spec.args["$defs"] == {
        "Tree": {
            "type": "object",
            "properties": {"inner": tree, "other": {"$ref": "#/$defs/Tree_1"}},
        },
        "Tree_1": TEXT,
    }


def test_property_of_the_name_ref_is_none() -> None:
    """It is a reference only where it is a text."""
    schema = {"type": "object", "properties": {"$ref": TEXT}}

    assert operation(sent_as_json(schema)).spec.args["properties"] == {"body": schema}


def test_too_many_references_are_left() -> None:
    """A hundred, each to the next."""
    schemas = {
        f"S{n}": {"items": {"$ref": f"#/components/schemas/S{n + 1}"}}
        for n in range(200)
    }
    body = sent_as_json({"$ref": "#/components/schemas/S0"})

    assert operations({"/a": {"post": body}}, components={"schemas": schemas}) == []


# ---------------------------------------------------------------- much of anything


def shared(count: int) -> Json:
    """Return operations that all refer to the same large schema."""
    parts = {f"p{n}": TEXT for n in range(900)}
    schemas = {"Large": {"type": "object", "properties": parts}}
    body = sent_as_json({"$ref": "#/components/schemas/Large"})
    paths = {f"/{n}": {"post": body} for n in range(count)}
    return {"paths": paths, "components": {"schemas": schemas}}


def inherited(count: int) -> Json:
    """Return paths that all have the parameters of one."""
    rows = [parameter(f"p{n}", "query") for n in range(2_000)]
    paths = {f"/{n}": {"$ref": "#/x"} for n in range(count)}
    return {"paths": paths, "x": {"parameters": rows, "get": {}}}


def keys(count: int) -> Json:
    """Return as many keys as operations."""
    one = {"type": "apiKey", "in": "query"}
    schemes = {f"k{n}": one | {"name": f"k{n}"} for n in range(count)}
    paths: Json = {f"/{n}": {"get": {}} for n in range(count)}
    return {"paths": paths, "components": {"securitySchemes": schemes}}


def pointers(count: int) -> Json:
    """Return operations that all go one long way."""
    paths = {f"/{n}": {"$ref": "#/x"} for n in range(count)}
    return {"paths": paths, "x": {"$ref": "#/" + "y/" * 50_000}}


@pytest.mark.parametrize("shape", [shared, inherited, keys, pointers])
def test_work_for_a_document_has_a_limit(shape: Any) -> None:
    """What is shared by all operations is paid for by each."""

    def read(count: int) -> int:
        return count_work(lambda: operations(**shape(count)), 20_000_000)

    once, twice = read(200), read(400)

    assert twice < 4_000_000
    assert twice <= 2.2 * once


def test_path_of_many_slashes() -> None:
    """It is looked at once."""
    with within(10.0):
        assert operations({"/" * 100 + "#": {"get": {}}}) == []


def test_variables_that_hold_each_other() -> None:
    """The address would become longer with each, to no end."""
    variables = {f"v{n}": {"default": f"{{v{n + 1}}}" * 2} for n in range(30)}
    servers = [{"url": "/{v0}", "variables": variables}]

    assert operations({"/a": {"get": {}}}, servers=servers) == []


def test_operations_that_are_too_large_are_named() -> None:
    """To administrators; the others are offered."""
    large = sent_as_json({"description": "x" * 60_000})
    content = {
        "openapi": "3.1.0",
        "paths": {"/large": {"post": large}, "/a": {"get": {}}, "/b": {"get": {}}},
    }
    left_out: list[str] = []

    found = OpenApiDocument(content, URL, "", ("*_a",)).operations(left_out.append)
    everything = OpenApiDocument(content, URL).operations(left_out.append)

    assert [one.spec.own_name for one in found] == ["get_a"]
    assert left_out == []
    assert [one.spec.own_name for one in everything] == ["get_a", "get_b"]
    assert left_out == ["post /large"]
