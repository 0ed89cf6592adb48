// SPDX-License-Identifier: Apache-2.0
//
// For tests: every tensor type as a GGUF file holds it, with the reference reader's floats.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/json.h"
#include "support/fixtures.h"
#include "tensor/dtype.h"

namespace tessera::tensor {

/// The tensors of types.gguf without a GGUF reader, which lives a layer above: the file's data is
/// in table order, each tensor padded to 32 bytes, and ends with the file.
struct TypesFixture {
  struct Tensor {
    std::string name;
    DType dtype;
    std::string bytes;
    std::vector<float> expected;
  };
  std::vector<Tensor> tensors;

  TypesFixture() {
    const std::string file = testing::ReadAll(testing::Shared("fixtures/gguf/types.gguf"));
    const std::string floats =
        testing::ReadAll(testing::Shared("fixtures/gguf/types_expected.f32"));
    const json::Value json =
        testing::ReadJson(testing::Shared("fixtures/gguf/types_expected.json"));
    uint64_t data_bytes = 0;
    for (const auto& [name, value] : json.as_object().at("tensors").as_object()) {
      const json::Object& row = value.as_object();
      const auto& shape = row.at("shape_rows_cols").as_array();
      const auto elements = static_cast<size_t>(shape[0].as_int64() * shape[1].as_int64());
      const auto id = static_cast<uint32_t>(row.at("type_id").as_int64());
      Tensor tensor{std::string(name), FindByGgufId(id).value(), "", std::vector<float>(elements)};
      EXPECT_EQ(Name(tensor.dtype), row.at("type").as_string());
      std::memcpy(tensor.expected.data(), floats.data() + row.at("f32_offset").as_int64(),
                  elements * sizeof(float));
      tensor.bytes.resize(RowBytes(tensor.dtype, elements).value());
      data_bytes += (tensor.bytes.size() + 31) / 32 * 32;
      tensors.push_back(std::move(tensor));
    }
    uint64_t offset = file.size() - data_bytes;
    for (Tensor& tensor : tensors) {
      tensor.bytes = file.substr(offset, tensor.bytes.size());
      offset += (tensor.bytes.size() + 31) / 32 * 32;
    }
  }
  const Tensor& Find(std::string_view name) const {
    for (const Tensor& tensor : tensors)
      if (tensor.name == name) return tensor;
    ADD_FAILURE() << name;
    return tensors.front();
  }
};

}  // namespace tessera::tensor
