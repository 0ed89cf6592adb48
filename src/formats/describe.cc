// SPDX-License-Identifier: Apache-2.0
#include "formats/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/printable.h"

namespace tessera::formats {
namespace {

// Column widths follow the contents up to these, so that one long name does not blow up all rows.
constexpr size_t kMaxNameColumn = 48;

json::Value NumberToJson(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return value;
}

template <class T>
json::Value ElementToJson(const T& element) {
  if constexpr (std::is_same_v<T, std::string>) {
    return json::Value(ValidUtf8(element));
  } else if constexpr (std::is_floating_point_v<T>) {
    return NumberToJson(element);
  } else {
    return json::Value(element);
  }
}

json::Value ToJson(const MetadataValue& value, size_t max_items) {
  return std::visit(
      [&]<class T>(const T& held) -> json::Value {
        if constexpr (std::is_same_v<T, std::string> || !requires { typename T::value_type; }) {
          return ElementToJson(held);
        } else {
          json::Array items;
          for (const auto& element : held) {
            if (items.size() == max_items) break;
            if constexpr (std::is_same_v<T, std::vector<NestedArray>>) {
              items.push_back(ToJson(element.value, max_items));
            } else {
              items.push_back(ElementToJson<typename T::value_type>(element));
            }
          }
          if (held.size() <= max_items) return items;
          return json::Object{
              {"kind", KindName(value)}, {"count", held.size()}, {"first", std::move(items)}};
        }
      },
      value);
}

std::string SplatHex(const Splat& splat) {
  std::string hex;
  for (size_t i = 0; i < splat.pattern_bytes; ++i)
    hex += fmt::format("{:02x}", static_cast<unsigned>(splat.pattern[i]));
  return hex;
}

json::Object FileToJson(const SourceFile& file, const DescribeOptions& options) {
  json::Object object;
  object.emplace("path", ValidUtf8(file.path.string()));
  object.emplace("format", FormatName(file.format));
  if (file.version != 0) object.emplace("version", file.version);
  if (file.alignment != 0) object.emplace("alignment", file.alignment);
  object.emplace("bytes", file.bytes.size());
  json::Object metadata;
  for (const auto& [key, value] : file.metadata.items())
    metadata.emplace(ValidUtf8(key), ToJson(value, options.array_items));
  object.emplace("metadata", std::move(metadata));
  return object;
}

json::Object EntryToJson(const ParameterEntry& entry) {
  json::Object object;
  object.emplace("name", ValidUtf8(entry.name));
  object.emplace("dtype", tensor::Name(entry.dtype));
  json::Array shape;
  for (const int64_t dim : entry.shape.dims()) shape.emplace_back(dim);
  object.emplace("shape", std::move(shape));
  object.emplace("file", entry.file);
  object.emplace("offset", entry.splat || entry.rows ? json::Value() : json::Value(entry.offset));
  object.emplace("bytes", entry.bytes);
  if (entry.splat) object.emplace("splat", SplatHex(*entry.splat));
  if (!entry.note.empty()) object.emplace("note", ValidUtf8(entry.note));
  if (!entry.is_tensor) object.emplace("is_tensor", false);
  return object;
}

struct Totals {
  uint64_t tensors = 0;
  uint64_t elements = 0;  // Of tensors, not of blobs; saturating, since splats cost nothing.
};

Totals Count(const ParameterIndex& index) {
  Totals totals;
  for (const ParameterEntry& entry : index.entries()) {
    if (!entry.is_tensor) continue;
    ++totals.tensors;
    if (AddOverflows(totals.elements, static_cast<uint64_t>(entry.shape.elements()),
                     &totals.elements))
      totals.elements = ~uint64_t{0};
  }
  return totals;
}

std::string ToText(const MetadataValue& value, const DescribeOptions& options);

template <class T>
std::string ElementToText(const T& element, const DescribeOptions& options) {
  if constexpr (std::is_same_v<T, std::string>) {
    return fmt::format("\"{}\"", Printable(element, options.text_bytes));
  } else if constexpr (std::is_same_v<T, NestedArray>) {
    return ToText(element.value, options);
  } else {
    return fmt::format("{}", element);
  }
}

std::string ToText(const MetadataValue& value, const DescribeOptions& options) {
  return std::visit(
      [&]<class T>(const T& held) -> std::string {
        if constexpr (std::is_same_v<T, std::string>) {
          return Printable(held, options.text_bytes);
        } else if constexpr (!requires { typename T::value_type; }) {
          return ElementToText(held, options);
        } else {
          std::string out = "[";
          const size_t shown = std::min(held.size(), options.array_items);
          for (size_t i = 0; i < shown; ++i) {
            if (i > 0) out += ", ";
            out += ElementToText<typename T::value_type>(held[i], options);
          }
          if (shown < held.size()) out += fmt::format(", ... ({})", held.size());
          return out + "]";
        }
      },
      value);
}

void AppendFile(std::string& out, const SourceFile& file, const DescribeOptions& options) {
  out += fmt::format("{}: {}", Printable(file.path.string()), FormatName(file.format));
  if (file.version != 0) out += fmt::format(" version {}", file.version);
  if (file.alignment != 0) out += fmt::format(", alignment {}", file.alignment);
  out += fmt::format(", {} bytes\n", file.bytes.size());
  size_t width = 0;
  for (const auto& [key, value] : file.metadata.items())
    width = std::max(width, std::min(key.size(), kMaxNameColumn));
  for (const auto& [key, value] : file.metadata.items())
    out += fmt::format("  {:<{}}  {:<15}  {}\n", Printable(key), width, KindName(value),
                       ToText(value, options));
}

void AppendEntries(std::string& out, const ParameterIndex& index) {
  size_t name_width = 4;
  size_t shape_width = 5;
  for (const ParameterEntry& entry : index.entries()) {
    name_width = std::max(name_width, std::min(entry.name.size(), kMaxNameColumn));
    shape_width = std::max(shape_width, entry.shape.ToString().size());
  }
  const bool several = index.files().size() > 1;
  out += fmt::format("\n{:<{}}  {:<8}  {:<{}}  {:>14}  {:>14}{}\n", "name", name_width, "dtype",
                     "shape", shape_width, "offset", "bytes", several ? "  file" : "");
  for (const ParameterEntry& entry : index.entries()) {
    const std::string offset = entry.splat  ? "splat " + SplatHex(*entry.splat)
                               : entry.rows ? std::string("made")
                                            : fmt::format("{}", entry.offset);
    out += fmt::format("{:<{}}  {:<8}  {:<{}}  {:>14}  {:>14}", Printable(entry.name), name_width,
                       entry.is_tensor ? tensor::Name(entry.dtype) : "blob", entry.shape.ToString(),
                       shape_width, offset, entry.bytes);
    if (several) out += fmt::format("  {}", entry.file);
    out += '\n';
  }
}

}  // namespace

std::string DescribeText(const ParameterIndex& index, const DescribeOptions& options) {
  std::string out;
  for (const SourceFile& file : index.files()) AppendFile(out, file, options);
  if (!index.entries().empty()) AppendEntries(out, index);
  const Totals totals = Count(index);
  out += fmt::format("\n{} tensors, {} elements; {} entries, {} bytes in {} file{}\n",
                     totals.tensors, totals.elements, index.entries().size(), index.total_bytes(),
                     index.files().size(), index.files().size() == 1 ? "" : "s");
  return out;
}

json::Value DescribeJson(const ParameterIndex& index, const DescribeOptions& options) {
  json::Array files;
  for (const SourceFile& file : index.files()) files.push_back(FileToJson(file, options));
  json::Array tensors;
  for (const ParameterEntry& entry : index.entries()) tensors.push_back(EntryToJson(entry));
  const Totals totals = Count(index);
  json::Object totals_json{{"files", index.files().size()},
                           {"tensors", totals.tensors},
                           {"elements", totals.elements},
                           {"bytes", index.total_bytes()}};
  return json::Object{{"files", std::move(files)},
                      {"tensors", std::move(tensors)},
                      {"totals", std::move(totals_json)}};
}

}  // namespace tessera::formats
