// SPDX-License-Identifier: Apache-2.0
//
// What OpenModel gathers around a model: tokens, templates, defaults, warnings; and what it says
// about folders that are no model.
#include "model/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "model/build.h"
#include "model/chat_templates.h"
#include "model/generation_defaults.h"
#include "model/gguf_tokenizer.h"
#include "model/limits.h"
#include "model/special_tokens.h"
#include "support/fixtures.h"

namespace tessera::model {
namespace {

namespace fs = std::filesystem;
using ::tessera::testing::Shared;
using ::tessera::testing::TempDir;
using ::tessera::testing::TestData;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelSource MustOpen(const fs::path& path) {
  Result<ModelSource> source = OpenModel(path);
  EXPECT_TRUE(source.has_value()) << StatusOf(source).ToString();
  return source.has_value() ? *std::move(source) : ModelSource{};
}

/// A copy of the tiny repository that a test may damage.
class CopiedRepository {
 public:
  CopiedRepository() {
    for (const fs::directory_entry& entry :
         fs::directory_iterator(Shared("fixtures/tiny_llama/hf"))) {
      Write(entry.path().filename().string(), testing::ReadAll(entry.path()));
    }
  }
  const fs::path& path() const { return folder_.path(); }
  void Remove(const std::string& name) { fs::remove(path() / name); }
  void Write(const std::string& name, std::string_view text) {
    fs::create_directories((path() / name).parent_path());
    const Status status = WriteFileAtomic(path() / name, text);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  Status Open() { return StatusOf(OpenModel(path())); }

 private:
  TempDir folder_;
};

json::Value Json(std::string_view text) {
  Result<json::Value> value = json::Parse(text, {}, text);
  EXPECT_TRUE(value.has_value()) << StatusOf(value).ToString();
  return value.value_or(json::Value());
}

TEST(Open, GathersARepository) {
  const ModelSource source = MustOpen(Shared("fixtures/tiny_llama/hf"));
  EXPECT_EQ(source.config.naming, Naming::kHuggingFace);
  EXPECT_THAT(source.special_tokens.eos_ids, ElementsAre(505, 509, 510));
  EXPECT_EQ(source.special_tokens.bos_id, 504);
  EXPECT_EQ(source.special_tokens.bos_text, "<|begin_of_text|>");
  EXPECT_EQ(source.special_tokens.eos_text, "<|eot_id|>");
  EXPECT_EQ(source.generation.temperature, 0.6);
  EXPECT_EQ(source.generation.top_p, 0.9);
  EXPECT_EQ(source.generation.do_sample, true);
  ASSERT_EQ(source.chat_templates.size(), 1u);
  EXPECT_EQ(source.chat_templates[0].name, "default");
  EXPECT_THAT(source.chat_templates[0].text, HasSubstr("bos_token"));
  ASSERT_TRUE(std::holds_alternative<JsonTokenizer>(source.tokenizer));
  EXPECT_EQ(std::get<JsonTokenizer>(source.tokenizer).json,
            testing::ReadAll(Shared("fixtures/tiny_llama/hf/tokenizer.json")));
  EXPECT_EQ(source.files.size(), 3u);
  EXPECT_THAT(source.warnings, IsEmpty());
}

TEST(Open, AnOptionalFileThatCannotBeReadIsNotLeftOut) {
  // What a cleaned-up download cache leaves: a link to a file that is gone.
  for (const std::string name :
       {"generation_config.json", "tokenizer_config.json", "chat_template.jinja"}) {
    CopiedRepository repository;
    repository.Remove(name);
    ASSERT_TRUE(repository.Open().ok()) << name;
    fs::create_symlink("gone", repository.path() / name);
    EXPECT_EQ(repository.Open().code(), Code::kNotFound) << name;
    EXPECT_THAT(repository.Open().ToString(), HasSubstr(name));
  }
}

TEST(Open, GathersAGgufAndKeepsItsTokenizerWhenMoved) {
  ModelSource opened = MustOpen(Shared("fixtures/tiny_llama/tiny-f16.gguf"));
  const ModelSource source = std::move(opened);
  EXPECT_EQ(source.config.naming, Naming::kGguf);
  ASSERT_TRUE(std::holds_alternative<GgufTokenizer>(source.tokenizer));
  const auto& tokenizer = std::get<GgufTokenizer>(source.tokenizer);
  EXPECT_EQ(tokenizer.pre, "llama-bpe");
  ASSERT_EQ(tokenizer.tokens.size(), 512u);
  EXPECT_EQ(tokenizer.tokens[504], "<|begin_of_text|>");
  EXPECT_EQ(source.special_tokens.bos_text, "<|begin_of_text|>");
  EXPECT_THAT(source.special_tokens.eos_ids, ::testing::IsSupersetOf({505, 510}));
}

TEST(Open, GathersSmolLm2) {
  const ModelSource source = MustOpen(TestData("SmolLM2-135M-Instruct.Q4_1.gguf"));
  EXPECT_EQ(source.config.family, "llama");
  EXPECT_TRUE(source.config.embedding.tied);
  EXPECT_EQ(source.config.context_length, 8192);
  // <|im_end|> ends a turn, <|endoftext|> a text.
  EXPECT_THAT(source.special_tokens.eos_ids, ::testing::UnorderedElementsAre(0, 2));
  ASSERT_EQ(source.chat_templates.size(), 1u);
  EXPECT_THAT(source.chat_templates[0].text, HasSubstr("<|im_start|>"));
}

TEST(Open, TakesOneOfAFoldersWeightFilesOrAFolderWithAGguf) {
  EXPECT_EQ(MustOpen(Shared("fixtures/tiny_llama/hf/model.safetensors")).config,
            MustOpen(Shared("fixtures/tiny_llama/hf")).config);
  TempDir folder;
  fs::copy(Shared("fixtures/tiny_llama/tiny-f16.gguf"), folder.path() / "tiny.gguf");
  std::ofstream(folder.path() / "config.json") << R"({"model_type": "llama"})";
  EXPECT_EQ(MustOpen(folder.path()).config.naming, Naming::kGguf);
}

TEST(Open, NamesTheFileThatIsMissingOrDamaged) {
  EXPECT_EQ(StatusOf(OpenModel("/no/such/model")).code(), Code::kNotFound);
  {
    CopiedRepository repository;
    repository.Remove("config.json");
    EXPECT_EQ(repository.Open().code(), Code::kNotFound);
    EXPECT_THAT(repository.Open().ToString(), HasSubstr("has no config.json"));
  }
  {
    CopiedRepository repository;
    repository.Remove("tokenizer.json");
    EXPECT_EQ(repository.Open().code(), Code::kNotFound);
    EXPECT_THAT(repository.Open().ToString(), HasSubstr("tokenizer.json"));
  }
  {
    CopiedRepository repository;
    repository.Write("config.json", "{\"model_type\": ");
    EXPECT_EQ(repository.Open().code(), Code::kInvalidArgument);
    EXPECT_THAT(repository.Open().ToString(), HasSubstr("config.json: offset"));
    repository.Write("config.json", "[]");
    EXPECT_THAT(repository.Open().ToString(), HasSubstr("is array, expected an object"));
    repository.Write("config.json", std::string(kMaxConfigBytes + 1, ' '));
    EXPECT_EQ(repository.Open().code(), Code::kResourceExhausted);
    repository.Write("config.json", R"({"model_type": "t5"})");
    EXPECT_EQ(repository.Open().code(), Code::kUnimplemented);
    EXPECT_THAT(repository.Open().ToString(), HasSubstr("config.json: model_type 't5'"));
  }
}

TEST(Open, TheJinjaFileWinsAndNamedTemplatesFollow) {
  CopiedRepository repository;
  repository.Write("chat_template.jinja", "from the file");
  repository.Write("additional_chat_templates/tool_use.jinja", "tools");
  repository.Write("additional_chat_templates/rag.jinja", "documents");
  const ModelSource source = MustOpen(repository.path());
  ASSERT_EQ(source.chat_templates.size(), 3u);
  EXPECT_EQ(source.chat_templates[0].name, "default");
  EXPECT_EQ(source.chat_templates[0].text, "from the file");
  EXPECT_EQ(source.chat_templates[1].name, "rag");
  EXPECT_EQ(source.chat_templates[2].text, "tools");
}

TEST(ChatTemplates, ReadsTheListForm) {
  const json::Value config = Json(
      R"({"chat_template": [{"name": "tool_use", "template": "t"},
                            {"name": "default", "template": "d"}]})");
  TempDir empty;
  const auto templates = ReadHfChatTemplates(empty.path(), config.if_object());
  ASSERT_TRUE(templates.has_value()) << templates.error().ToString();
  ASSERT_EQ(templates->size(), 2u);
  EXPECT_EQ((*templates)[0].text, "d");
  EXPECT_EQ((*templates)[1].name, "tool_use");
  for (const char* bad : {R"({"chat_template": 1})", R"({"chat_template": ["x"]})",
                          R"({"chat_template": [{"name": "default"}]})"}) {
    EXPECT_EQ(StatusOf(ReadHfChatTemplates(empty.path(), Json(bad).if_object())).code(),
              Code::kInvalidArgument)
        << bad;
  }
}

TEST(ChatTemplates, HoldTheirLimits) {
  TempDir folder;
  const auto open = [&](size_t bytes) {
    json::Object config;
    config["chat_template"] = std::string(bytes, 'x');
    return StatusOf(ReadHfChatTemplates(folder.path(), &config)).code();
  };
  EXPECT_EQ(open(kMaxTemplateFileBytes), Code::kOk);
  EXPECT_EQ(open(kMaxTemplateFileBytes + 1), Code::kResourceExhausted);

  const auto count = [](size_t n) {
    formats::Metadata metadata;
    for (size_t i = 0; i < n; ++i) {
      EXPECT_TRUE(
          metadata.Add("tokenizer.chat_template.t" + std::to_string(i), std::string("x")).ok());
    }
    return StatusOf(ReadGgufChatTemplates(metadata)).code();
  };
  EXPECT_EQ(count(kMaxTemplates), Code::kOk);
  EXPECT_EQ(count(kMaxTemplates + 1), Code::kResourceExhausted);
}

TEST(SpecialTokens, MergeEveryFilesEndTokens) {
  const json::Value config = Json(R"({"eos_token_id": 2, "bos_token_id": 1, "pad_token_id": -1})");
  const json::Value generation = Json(R"({"eos_token_id": [7, 2], "pad_token_id": 9})");
  const json::Value tokenizer = Json(
      R"({"eos_token": {"content": "<end>"}, "bos_token": "<s>",
          "added_tokens_decoder": {"5": {"content": "<other>"}, "8": {"content": "<end>"}}})");
  const auto tokens = ReadHfSpecialTokens({.config = config.if_object(),
                                           .generation = generation.if_object(),
                                           .tokenizer_config = tokenizer.if_object()},
                                          10);
  ASSERT_TRUE(tokens.has_value()) << tokens.error().ToString();
  EXPECT_THAT(tokens->eos_ids, ElementsAre(2, 7, 8));
  EXPECT_EQ(tokens->bos_id, 1);
  EXPECT_EQ(tokens->pad_id, 9);
  EXPECT_EQ(tokens->eos_text, "<end>");
}

TEST(SpecialTokens, FindTheTokenizersEndInItsVocabularyToo) {
  const json::Value config = Json(R"({"eos_token": "b"})");
  const auto read = [&](const std::string& tokenizer) {
    return ReadHfSpecialTokens(
        {.tokenizer_config = config.if_object(), .tokenizer_json = &tokenizer}, 10);
  };
  EXPECT_THAT(read(R"({"added_tokens": [{"id": 3, "content": "b"}]})")->eos_ids, ElementsAre(3));
  EXPECT_THAT(read(R"({"model": {"vocab": {"a": 0, "b": 4}}})")->eos_ids, ElementsAre(4));
  EXPECT_THAT(StatusOf(read("{}")).ToString(), HasSubstr("eos_token 'b' is in no vocabulary"));
}

TEST(SpecialTokens, RefuseIdsOutsideTheVocabularyAndTooMany) {
  const auto read = [](const std::string& text) {
    const json::Value config = Json(text);
    return StatusOf(ReadHfSpecialTokens({.config = config.if_object()}, 300));
  };
  EXPECT_TRUE(read(R"({"eos_token_id": 299})").ok());
  EXPECT_THAT(read(R"({"eos_token_id": 300})").ToString(), HasSubstr("token id 300"));
  EXPECT_THAT(read(R"({"eos_token_id": "2"})").ToString(), HasSubstr("expected integers"));
  const auto list = [&](uint64_t n) {
    std::string text = "0";
    for (uint64_t i = 1; i < n; ++i) text += "," + std::to_string(i);
    return read("{\"eos_token_id\": [" + text + "]}").code();
  };
  EXPECT_EQ(list(kMaxEosIds), Code::kOk);
  EXPECT_EQ(list(kMaxEosIds + 1), Code::kResourceExhausted);
}

TEST(Generation, WarnsOfWhatIsNotApplied) {
  std::vector<std::string> warnings;
  const json::Value config = Json(
      R"({"temperature": 0.7, "top_k": 20, "top_p": 7, "no_repeat_ngram_size": 3,
          "transformers_version": "4", "max_length": 9, "typical_p": null})");
  const auto defaults = ReadHfGeneration(config.as_object(), warnings);
  ASSERT_TRUE(defaults.has_value()) << defaults.error().ToString();
  EXPECT_EQ(defaults->temperature, 0.7);
  EXPECT_EQ(defaults->top_k, 20);
  EXPECT_FALSE(defaults->top_p.has_value());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("'top_p' is 7"),
                                    HasSubstr("'no_repeat_ngram_size' is not applied")));
}

TEST(GgufTokenizer, RefusesArraysThatDoNotFit) {
  const auto read = [](formats::MetadataValue types) {
    formats::Metadata metadata;
    EXPECT_TRUE(metadata.Add("tokenizer.ggml.model", std::string("gpt2")).ok());
    EXPECT_TRUE(metadata.Add("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"}).ok());
    EXPECT_TRUE(metadata.Add("tokenizer.ggml.token_type", std::move(types)).ok());
    return StatusOf(ReadGgufTokenizer(metadata));
  };
  EXPECT_TRUE(read(std::vector<int32_t>{1, 1}).ok());
  EXPECT_THAT(read(std::vector<int32_t>{1}).ToString(), HasSubstr("has 1 entries, expected 2"));
  EXPECT_THAT(read(std::vector<float>{1, 1}).ToString(), HasSubstr("has another type"));
  EXPECT_EQ(StatusOf(ReadGgufTokenizer({})).code(), Code::kNotFound);
}

}  // namespace
}  // namespace tessera::model
