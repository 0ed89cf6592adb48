// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/writer.h"

#include <fmt/format.h>

#include <bit>
#include <vector>

#include "base/file.h"
#include "formats/gguf/metadata_writer.h"
#include "formats/gguf/reader.h"
#include "formats/limits.h"

namespace tessera::formats::gguf {
namespace {

constexpr uint64_t kDefaultAlignment = 32;

struct Plan {
  std::string head;  // Up to the data section, padded.
  uint64_t alignment = kDefaultAlignment;
};

Result<uint64_t> Alignment(const Metadata& metadata) {
  const MetadataValue* value = metadata.Find("general.alignment");
  if (value == nullptr) return kDefaultAlignment;
  const auto* alignment = std::get_if<uint32_t>(value);
  if (alignment == nullptr || !std::has_single_bit(*alignment) || *alignment > kMaxGgufAlignment)
    return Fail(InvalidArgument(fmt::format(
        "metadata general.alignment must be a u32, a power of two up to {}", kMaxGgufAlignment)));
  return *alignment;
}

Status CheckTensor(const WriteTensor& tensor) {
  const auto& [dtype, shape, bytes] = tensor.view;
  const tensor::DTypeInfo& info = tensor::Info(dtype);
  if (info.gguf_id < 0) return InvalidArgument(fmt::format("GGUF has no type for {}", info.name));
  if (shape.rank() > kMaxGgufDims)
    return InvalidArgument(
        fmt::format("shape {} has more than {} dimensions", shape.ToString(), kMaxGgufDims));
  TESSERA_RETURN_IF_ERROR(StatusOf(shape.Elements()));
  TESSERA_ASSIGN_OR_RETURN(const uint64_t row,
                           tensor::RowBytes(dtype, static_cast<uint64_t>(shape.columns())));
  uint64_t expected = 0;
  if (MulOverflows(row, static_cast<uint64_t>(shape.rows()), &expected) || bytes.size() != expected)
    return InvalidArgument(fmt::format("{} of {} needs {} bytes, {} were given", shape.ToString(),
                                       info.name, expected, bytes.size()));
  return {};
}

Result<Plan> MakePlan(const Metadata& metadata, std::span<const WriteTensor> tensors,
                      const WriteOptions& options) {
  Plan plan;
  TESSERA_ASSIGN_OR_RETURN(plan.alignment, Alignment(metadata));
  ByteWriter out;
  out.Write(kMagic);
  out.Write(options.version);
  out.Write(static_cast<uint64_t>(tensors.size()));
  out.Write(static_cast<uint64_t>(metadata.items().size()));
  WriteMetadata(out, metadata);
  uint64_t offset = 0;
  for (const WriteTensor& tensor : tensors) {
    if (Status status = CheckTensor(tensor); !status.ok())
      return Fail(std::move(status).WithContext(fmt::format("tensor {}", tensor.name)));
    WriteString(out, tensor.name);
    const auto dims = tensor.view.shape.dims();
    out.Write(static_cast<uint32_t>(dims.size()));
    for (size_t i = dims.size(); i > 0; --i) out.Write(static_cast<uint64_t>(dims[i - 1]));
    out.Write(static_cast<uint32_t>(tensor::Info(tensor.view.dtype).gguf_id));
    out.Write(offset);
    // Views lie in memory, so their sum is far from 2^64.
    offset += (tensor.view.bytes.size() + plan.alignment - 1) / plan.alignment * plan.alignment;
  }
  out.PadTo(plan.alignment);
  plan.head = std::move(out).Take();
  return plan;
}

}  // namespace

Result<std::string> Make(const Metadata& metadata, std::span<const WriteTensor> tensors,
                         const WriteOptions& options) {
  TESSERA_ASSIGN_OR_RETURN(const Plan plan, MakePlan(metadata, tensors, options));
  ByteWriter out;
  out.WriteText(plan.head);
  for (const WriteTensor& tensor : tensors) {
    out.WriteBytes(tensor.view.bytes);
    out.PadTo(plan.alignment);
  }
  return std::move(out).Take();
}

Status Write(const std::filesystem::path& path, const Metadata& metadata,
             std::span<const WriteTensor> tensors, const WriteOptions& options) {
  TESSERA_ASSIGN_OR_RETURN(const Plan plan, MakePlan(metadata, tensors, options));
  TESSERA_ASSIGN_OR_RETURN(auto file, FileWriter::Create(path));
  TESSERA_RETURN_IF_ERROR(file->Append(AsBytes(plan.head)));
  for (const WriteTensor& tensor : tensors) {
    TESSERA_RETURN_IF_ERROR(file->Append(tensor.view.bytes));
    const uint64_t rest = file->size() % plan.alignment;
    if (rest != 0) TESSERA_RETURN_IF_ERROR(file->PadTo(file->size() + plan.alignment - rest));
  }
  return file->Finish();
}

}  // namespace tessera::formats::gguf
