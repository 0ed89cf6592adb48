// SPDX-License-Identifier: Apache-2.0
//
// Any quantization_config over tensors of any contents, shaped as one of the packings has them: it
// is refused, or every matrix that it gives can be read to its last row. The bytes before the first
// brace fill the tensors.
#include <string_view>
#include <vector>

#include "base/check.h"
#include "formats/parameter_index.h"
#include "model/model_config.h"
#include "model/quantised/quantised_index.h"
#include "tensor/convert.h"

namespace {

using tessera::formats::ParameterEntry;
using tessera::formats::ParameterIndex;
using tessera::tensor::DType;
using tessera::tensor::Shape;

/// Entries over one buffer that the input fills, over and over.
class Tensors {
 public:
  explicit Tensors(std::string_view contents) {
    for (size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<std::byte>(contents.empty() ? 0 : contents[i % contents.size()]);
    tessera::formats::SourceFile file;
    file.path = "input";
    file.bytes = bytes_;
    index_.AddFile(std::move(file));
  }
  void Add(const char* name, DType dtype, Shape shape) {
    ParameterEntry entry;
    entry.name = name;
    entry.dtype = dtype;
    entry.bytes =
        static_cast<uint64_t>(shape.elements()) * tessera::tensor::Info(dtype).block_bytes;
    entry.shape = std::move(shape);
    entry.offset = used_;
    used_ += entry.bytes;
    TESSERA_CHECK(used_ <= bytes_.size() && index_.Add(std::move(entry)).ok());
  }
  const ParameterIndex& index() const { return index_; }

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(8192);
  uint64_t used_ = 0;
  ParameterIndex index_;
};

void AddAll(Tensors& tensors) {
  tensors.Add("a.qweight", DType::kI32, {8, 16});  // GPTQ, 4 bits: 16 x 64.
  tensors.Add("a.qzeros", DType::kI32, {2, 2});
  tensors.Add("a.scales", DType::kF16, {2, 16});
  tensors.Add("a.g_idx", DType::kI32, {64});
  tensors.Add("b.weight_packed", DType::kI32, {16, 8});
  tensors.Add("b.weight_scale", DType::kBF16, {16, 2});
  tensors.Add("b.weight_zero_point", DType::kI32, {2, 2});
  tensors.Add("b.weight_shape", DType::kI64, {2});
  tensors.Add("c.weight", DType::kF8E4M3, {16, 64});
  tensors.Add("c.weight_scale", DType::kF32, {16, 1});
  tensors.Add("norm.weight", DType::kF32, {16});
}

/// AWQ's shapes under the names that GPTQ has, too.
void AddAwq(Tensors& tensors) {
  tensors.Add("a.qweight", DType::kI32, {64, 2});
  tensors.Add("a.qzeros", DType::kI32, {2, 2});
  tensors.Add("a.scales", DType::kF16, {2, 16});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t brace = text.find('{');
  if (brace == std::string_view::npos) return 0;
  const auto config = tessera::json::Parse(text.substr(brace), {}, "quantization_config");
  if (!config.has_value() || !config->is_object()) return 0;
  const auto quantisation = tessera::model::ReadQuantisation(config->get_object());
  if (!quantisation.has_value()) {
    TESSERA_CHECK(!quantisation.error().message().empty());
    return 0;
  }
  Tensors tensors(text.substr(0, brace));
  if (quantisation->method == tessera::model::QuantisationMethod::kAwq) {
    AddAwq(tensors);
  } else {
    AddAll(tensors);
  }
  std::vector<std::string> warnings;
  const auto index = tessera::model::OpenQuantised(tensors.index(), *quantisation,
                                                   tessera::model::ModelConfig(), warnings);
  if (!index.has_value()) return 0;
  for (const ParameterEntry& entry : index->entries()) {
    const auto bytes = index->Materialise(entry);
    if (!bytes.has_value()) continue;  // A scale that is no number, a wrong zero point.
    TESSERA_CHECK(bytes->size() == entry.bytes);
    std::vector<float> values(static_cast<size_t>(entry.shape.elements()));
    if (tessera::tensor::CanConvertToFloat(entry.dtype))
      TESSERA_CHECK(tessera::tensor::ToFloat(entry.dtype, *bytes, values).ok());
  }
  return 0;
}
