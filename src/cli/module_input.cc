// SPDX-License-Identifier: Apache-2.0
#include "cli/module_input.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/file.h"
#include "formats/npy/npy.h"
#include "tensor/convert.h"

namespace tessera::cli {
namespace {

using tensor::DType;

constexpr uint64_t kMaxElementBytes = uint64_t{1} << 30;
constexpr int kMaxRank = 8;

struct ElementType {
  std::string_view name;
  DType dtype;
};
constexpr ElementType kElementTypes[] = {
    {"i64", DType::kI64}, {"i32", DType::kI32},   {"i8", DType::kI8},   {"ui8", DType::kU8},
    {"f16", DType::kF16}, {"bf16", DType::kBF16}, {"f32", DType::kF32}, {"f64", DType::kF64}};

std::optional<DType> FindType(std::string_view name) {
  for (const ElementType& type : kElementTypes)
    if (type.name == name) return type.dtype;
  return std::nullopt;
}

template <class T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
void Put(T value, std::vector<std::byte>* out) {
  const auto* raw = reinterpret_cast<const std::byte*>(&value);
  out->insert(out->end(), raw, raw + sizeof(value));
}

template <class T>
bool PutInteger(std::string_view text, std::vector<std::byte>* out) {
  const auto value = ParseNumber<int64_t>(text);
  if (!value || *value < std::numeric_limits<T>::min() || *value > std::numeric_limits<T>::max())
    return false;
  Put(static_cast<T>(*value), out);
  return true;
}

bool PutElement(DType dtype, std::string_view text, std::vector<std::byte>* out) {
  switch (dtype) {
    case DType::kI64:
      return PutInteger<int64_t>(text, out);
    case DType::kI32:
      return PutInteger<int32_t>(text, out);
    case DType::kI8:
      return PutInteger<int8_t>(text, out);
    case DType::kU8:
      return PutInteger<uint8_t>(text, out);
    default:
      break;
  }
  const auto value = ParseNumber<double>(text);
  if (!value) return false;
  const auto narrow = static_cast<float>(*value);
  if (dtype == DType::kF64) Put(*value, out);
  if (dtype == DType::kF32) Put(narrow, out);
  if (dtype == DType::kF16) Put(tensor::FloatToHalf(narrow), out);
  if (dtype == DType::kBF16) Put(tensor::FloatToBFloat16(narrow), out);
  return true;
}

/// Calls each(word) for what stands between spaces and commas; false when it was false.
template <class Each>
bool ForEachWord(std::string_view text, const Each& each) {
  constexpr std::string_view kBetween = " ,\t[]";
  for (;;) {
    const size_t begin = text.find_first_not_of(kBetween);
    if (begin == std::string_view::npos) return true;
    text.remove_prefix(begin);
    const size_t end = std::min(text.find_first_of(kBetween), text.size());
    if (!each(text.substr(0, end))) return false;
    text.remove_prefix(end);
  }
}

Result<ModuleInput> ParseType(std::string_view text) {
  ModuleInput input;
  std::vector<int64_t> dims;
  std::string_view rest = text;
  for (;;) {
    const size_t end = rest.find('x');
    const auto dim =
        end == std::string_view::npos ? std::nullopt : ParseNumber<int64_t>(rest.substr(0, end));
    if (!dim) break;
    if (*dim < 0 || dims.size() == kMaxRank)
      return Fail(InvalidArgument(fmt::format("\"{:.60}\": a dimension is out of range", text)));
    dims.push_back(*dim);
    rest.remove_prefix(end + 1);
  }
  const auto dtype = FindType(rest);
  if (!dtype)
    return Fail(InvalidArgument(fmt::format(
        "\"{:.60}\" is no type of an array; expected such as 1x128xi64, of i64, i32, i8, ui8, "
        "f16, bf16, f32 or f64",
        text)));
  input.dtype = *dtype;
  input.shape = tensor::Shape(std::move(dims));
  TESSERA_RETURN_IF_ERROR(StatusOf(input.shape.Elements()));
  return input;
}

Status ReadNpy(const std::string& path, ModuleInput* input) {
  TESSERA_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kMaxElementBytes));
  TESSERA_ASSIGN_OR_RETURN(const formats::npy::Array array,
                           formats::npy::Read(AsBytes(file), path));
  input->dtype = array.dtype;
  input->shape = array.shape;
  input->bytes.assign(array.bytes.begin(), array.bytes.end());
  return {};
}

Status ReadElements(std::string_view text, uint64_t elements, ModuleInput* input) {
  const uint64_t width = tensor::Info(input->dtype).block_bytes;
  if (elements > kMaxElementBytes / width)
    return ResourceExhausted(fmt::format("{} elements; at most 1 GiB is given by value", elements));
  if (text.starts_with("@")) {
    TESSERA_ASSIGN_OR_RETURN(const std::string file,
                             ReadFile(std::string(text.substr(1)), kMaxElementBytes));
    if (file.size() != elements * width)
      return InvalidArgument(fmt::format("{} has {} bytes, the type needs {}", text.substr(1),
                                         file.size(), elements * width));
    const ByteSpan bytes = AsBytes(file);
    input->bytes.assign(bytes.begin(), bytes.end());
    return {};
  }
  std::string_view wrong;
  const bool fits = ForEachWord(text, [&](std::string_view word) {
    wrong = word;
    return input->bytes.size() < elements * width && PutElement(input->dtype, word, &input->bytes);
  });
  if (!fits)
    return InvalidArgument(
        fmt::format("\"{:.40}\" is no number of the type, or one too many", wrong));
  if (input->bytes.size() == width && elements > 1) {  // One value for all.
    const std::vector<std::byte> one = input->bytes;
    input->bytes.resize(elements * width);
    for (uint64_t i = 0; i < elements; ++i)
      std::memcpy(input->bytes.data() + i * width, one.data(), width);
  }
  if (input->bytes.size() != elements * width)
    return InvalidArgument(
        fmt::format("{} values for {} elements", input->bytes.size() / width, elements));
  return {};
}

}  // namespace

std::vector<int64_t> ModuleInput::Integers() const {
  std::vector<int64_t> values(static_cast<size_t>(shape.elements()));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Result<ModuleInput> ParseModuleInput(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view type = text.substr(0, equals);
  if (type.starts_with("@")) {
    ModuleInput input;
    const Status status = ReadNpy(std::string(text.substr(1)), &input);
    if (!status.ok()) return Fail(status);
    return input;
  }
  TESSERA_ASSIGN_OR_RETURN(ModuleInput input, ParseType(type));
  if (equals == std::string_view::npos) return input;
  std::string_view value = text.substr(equals + 1);
  // "1x4xi64=@file.npy": the type is said twice, and must be the same.
  if (value.starts_with("@") && value.ends_with(".npy")) {
    ModuleInput file;
    TESSERA_RETURN_IF_ERROR(ReadNpy(std::string(value.substr(1)), &file));
    if (file.dtype == input.dtype && file.shape == input.shape) return file;
    return Fail(InvalidArgument(fmt::format("{} is {}, not {}", value.substr(1),
                                            ModuleInputType(file.dtype, file.shape), type)));
  }
  const Status status = ReadElements(value, static_cast<uint64_t>(input.shape.elements()), &input);
  if (!status.ok()) return Fail(status.WithContext(fmt::format("{:.60}", type)));
  return input;
}

std::string ModuleInputType(DType dtype, const tensor::Shape& shape) {
  std::string text;
  for (const int64_t dim : shape.dims()) text += fmt::format("{}x", dim);
  for (const ElementType& type : kElementTypes)
    if (type.dtype == dtype) return text + std::string(type.name);
  return text + std::string(tensor::Name(dtype));
}

}  // namespace tessera::cli
