// SPDX-License-Identifier: Apache-2.0
#include "text/fixture_templates.h"

#include "support/fixtures.h"
#include "text/test_vocabularies.h"

namespace tessera::text {
namespace {

using testing::ReadAll;
using testing::ReadJson;
using testing::Shared;
using testing::TestData;

std::string Text(const json::Object& object, std::string_view key) {
  return std::string(object.at(key).as_string());
}

std::string TemplateText(const json::Object& source) {
  const std::string file = Text(source, "file");
  if (Text(source, "registry") == "npm") {
    const auto path = TestData("npm/node_modules/" + Text(source, "package") + "/" + file);
    return Text(ReadJson(path).as_object(), "chat_template");
  }
  if (file.ends_with(".jinja"))
    return ReadAll(TestData("llama_cpp_models/templates" + file.substr(file.rfind('/'))));
  const auto gguf = ReadGgufTokenizer(TestData(file.substr(file.rfind('/') + 1)));
  return gguf.texts.at("tokenizer.chat_template");
}

std::map<std::string, FixtureTemplate> ReadTemplates() {
  std::map<std::string, FixtureTemplate> templates;
  const json::Value manifest = ReadJson(Shared("fixtures/chat_templates/templates.json"));
  for (const auto& [name, value] : manifest.at("templates").as_object()) {
    const json::Object& source = value.as_object();
    templates[name] = {TemplateText(source), source.at("vars").as_object()};
  }
  return templates;
}

}  // namespace

const std::map<std::string, FixtureTemplate>& FixtureTemplates() {
  static const std::map<std::string, FixtureTemplate> templates = ReadTemplates();
  return templates;
}

}  // namespace tessera::text
