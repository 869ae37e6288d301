// JSON as Kiln reads and writes it: the bound of its depth, and text that no reader or terminal stumbles over.
#include <kiln_json.hpp>

#include <catch2/catch.hpp>

#include <string>

using namespace kiln;

TEST_CASE("json text: lists and tables are at most 512 deep", "[contract]") {
  const auto nested = [](std::size_t depth, const std::string& open, const std::string& inner,
                         const std::string& close) {
    std::string text;
    for (std::size_t at = 0; at < depth; ++at) text += open;
    text += inner;
    for (std::size_t at = 0; at < depth; ++at) text += close;
    return text;
  };
  CHECK_FALSE(parse_json(nested(512, "[", "", "]")).is_discarded());
  CHECK(parse_json(nested(513, "[", "", "]")).is_discarded());
  CHECK_FALSE(parse_json(nested(512, "{\"a\":", "1", "}")).is_discarded());
  CHECK(parse_json(nested(513, "{\"a\":", "1", "}")).is_discarded());
  CHECK(parse_json(nested(257, "[{\"a\":", "1", "}]")).is_discarded());
  // Those that stand beside each other, or in a text, do not count.
  std::string beside = "[";
  for (int at = 0; at < 600; ++at) beside += at == 0 ? "[]" : ",{}";
  CHECK_FALSE(parse_json(beside + "]").is_discarded());
  CHECK_FALSE(parse_json("\"" + std::string(600, '[') + std::string(600, '{') + "\"").is_discarded());
  CHECK_FALSE(parse_json("[\"\\\"" + std::string(600, '[') + "\"]").is_discarded());
  CHECK_FALSE(parse_json("[\"\\\\\"]").is_discarded());
  for (const char* const text : {"", "{", "]", "[1,]", "nul", "\"a", "{\"a\"}", "1 2"}) {
    INFO(text);
    CHECK(parse_json(text).is_discarded());
  }
  CHECK(parse_json("{\"b\": 1, \"a\": [true, null, -2.5]}").dump() == "{\"b\":1,\"a\":[true,null,-2.5]}");
}

TEST_CASE("json text: members stand in the order in which they were put, on one line or on several", "[contract]") {
  Json json;
  json["b"] = 1;
  json["a"] = {true, nullptr};
  CHECK(json_text(json) == "{\"b\":1,\"a\":[true,null]}");
  CHECK(json_text(json, 2) == "{\n  \"b\": 1,\n  \"a\": [\n    true,\n    null\n  ]\n}");
  CHECK(json_text(Json(nullptr)) == "null");
}

TEST_CASE("json text: what a terminal obeys is escaped, and what is no UTF-8 is replaced", "[contract]") {
  CHECK(json_text(Json("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\xa5")) ==
        "\"plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\xa5\"");
  CHECK(json_text(Json("a\nb\t\x1b\x01\"\\")) == "\"a\\nb\\t\\u001b\\u0001\\\"\\\\\"");
  CHECK(json_text(Json("a\x7f")) == "\"a\\u007f\"");
  CHECK(json_text(Json("\x7f\x7f z")) == "\"\\u007f\\u007f z\"");
  CHECK(json_text(Json("a~")) == "\"a~\"");
  CHECK(json_text(Json("a\xc2\x9b z")) == "\"a\\u009b z\"");
  CHECK(json_text(Json("\xe2\x80\xaex\xe2\x80\xac")) == "\"\\u202ex\\u202c\"");
  CHECK(json_text(Json("a\xff b")) == "\"a\xef\xbf\xbd b\"");
  for (const char* const text : {"a\x7f\xc2\x9b\xe2\x80\xae", "plain", "a\nb"}) {
    CHECK(parse_json(json_text(Json(text))).get<std::string>() == text);
  }
}
