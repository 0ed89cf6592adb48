// SPDX-License-Identifier: Apache-2.0
#include "formats/source_file.h"

#include <utility>

namespace tessera::formats {

SourceFile FromBytes(Format format, ByteSpan bytes, const std::filesystem::path& path) {
  SourceFile file;
  file.path = path;
  file.format = format;
  file.bytes = bytes;
  return file;
}

SourceFile FromMapping(Format format, std::shared_ptr<const MappedFile> mapping) {
  SourceFile file = FromBytes(format, mapping->bytes(), mapping->path());
  file.mapping = std::move(mapping);
  return file;
}

Result<ParameterIndex> ParseNamed(ParseFn parse, SourceFile file) {
  const std::string name = file.path.string();
  auto index = parse(std::move(file));
  if (!index.has_value()) return Fail(index.error().WithContext(name));
  return index;
}

}  // namespace tessera::formats
