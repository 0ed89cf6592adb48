// SPDX-License-Identifier: Apache-2.0
#include "model/dataset_source.h"

#include <fmt/format.h>

#include "formats/irpa/dataset.h"
#include "formats/irpa/logical_index.h"
#include "model/chat_templates.h"
#include "model/dataset_properties.h"
#include "model/families.h"
#include "model/generation_defaults.h"
#include "model/gguf_config.h"
#include "model/gguf_tokenizer.h"
#include "model/hf_config.h"
#include "model/repository_texts.h"
#include "model/special_tokens.h"
#include "model/text_sources.h"

namespace tessera::model {
namespace {

namespace fs = std::filesystem;

Status ReadConfig(const DatasetProperties& properties, ModelSource& source) {
  if (properties.hf_config == nullptr) {
    TESSERA_ASSIGN_OR_RETURN(source.config, ReadGgufConfig(source.index));
    ApplyDatasetRope(properties, source.config);
    return CheckConfig(source.config);
  }
  Result<ModelConfig> config = ReadHfConfig(*properties.hf_config);
  if (!config.has_value()) return std::move(config).error().WithContext("properties");
  source.config = *std::move(config);
  UseNamesOf(source.index, source.config);
  return {};
}

/// The tokenizer that a GGUF import keeps in the properties, with all that goes with it.
Status ReadTextsOfProperties(ModelSource& source) {
  const formats::Metadata& metadata = source.index.metadata();
  TESSERA_ASSIGN_OR_RETURN(const GgufTokenizer tokenizer, ReadGgufTokenizer(metadata));
  TESSERA_ASSIGN_OR_RETURN(source.special_tokens, ReadGgufSpecialTokens(metadata, tokenizer));
  source.tokenizer = tokenizer;
  TESSERA_ASSIGN_OR_RETURN(source.chat_templates, ReadGgufChatTemplates(metadata));
  TESSERA_ASSIGN_OR_RETURN(source.generation, ReadGgufGeneration(metadata));
  return {};
}

}  // namespace

Status OpenDataset(const fs::path& folder, ModelSource& source) {
  TESSERA_ASSIGN_OR_RETURN(formats::irpa::Dataset dataset,
                           formats::irpa::ReadDataset(source.index));
  source.dataset_properties = std::make_shared<const json::Object>(std::move(dataset.properties));
  TESSERA_ASSIGN_OR_RETURN(DatasetProperties properties,
                           ReadDatasetProperties(*source.dataset_properties));
  TESSERA_ASSIGN_OR_RETURN(
      source.index,
      formats::irpa::OpenLogical(source.index, dataset, std::move(properties.metadata)));
  TESSERA_RETURN_IF_ERROR(ReadConfig(properties, source));
  if (IsPresent(folder / "tokenizer.json"))
    return ReadRepositoryTexts(folder, properties.hf_config, source);
  if (source.index.metadata().Find("tokenizer.ggml.model") != nullptr)
    return ReadTextsOfProperties(source);
  source.tokenizer = JsonTokenizer{};
  source.warnings.push_back(
      fmt::format("the dataset has no tokenizer: put tokenizer.json into {}",
                  folder.empty() ? std::string("its folder") : folder.string()));
  return {};
}

Status UseHfOrder(ModelSource* source) {
  constexpr std::string_view kArchitecture = "general.architecture";
  const json::Value* architecture = source->dataset_properties == nullptr
                                        ? nullptr
                                        : json::Find(*source->dataset_properties, kArchitecture);
  if (architecture == nullptr || !architecture->is_string())
    return InvalidArgument(
        fmt::format("{} is no dataset whose properties say in which order rotary pairs are",
                    source->path.string()));
  json::Object properties = *source->dataset_properties;
  properties[fmt::format("{}.{}", std::string_view(architecture->get_string()), kInterleaveKey)] =
      false;
  source->dataset_properties = std::make_shared<const json::Object>(std::move(properties));
  source->config.rope.style = graph::RopeStyle::kHalf;
  source->use_hf_order = true;
  return {};
}

Result<formats::ParameterIndex> DatasetMetadata(const formats::ParameterIndex& archive) {
  TESSERA_ASSIGN_OR_RETURN(const formats::irpa::Dataset dataset,
                           formats::irpa::ReadDataset(archive));
  TESSERA_ASSIGN_OR_RETURN(DatasetProperties properties, ReadDatasetProperties(dataset.properties));
  formats::SourceFile file = archive.files().front();
  file.metadata = std::move(properties.metadata);
  formats::ParameterIndex index;
  index.AddFile(std::move(file));
  return index;
}

}  // namespace tessera::model
