// SPDX-License-Identifier: Apache-2.0
#include "cli/flagfile.h"

#include <fmt/format.h>

#include "base/file.h"

namespace tessera::cli {
namespace {

constexpr uint64_t kMaxFlagfileBytes = 1 << 20;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace

Result<std::vector<std::string>> ParseFlagfile(std::string_view text, std::string_view where) {
  std::vector<std::string> flags;
  size_t line_number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (line.empty() || line.starts_with("#") || line.starts_with("//")) continue;
    if (line.contains('\0'))
      return Fail(InvalidArgument(
          fmt::format("{}:{}: holds a zero byte; expected a text file", where, line_number)));
    if (!line.starts_with("--") || line == "--")
      return Fail(InvalidArgument(
          fmt::format("{}:{}: \"{:.80}\" is not a flag; expected --name or --name=value", where,
                      line_number, line)));
    if (line.starts_with("--flagfile"))
      return Fail(InvalidArgument(
          fmt::format("{}:{}: a flagfile cannot name another flagfile", where, line_number)));
    flags.emplace_back(line);
  }
  return flags;
}

Result<std::vector<std::string>> ExpandFlagfiles(const std::vector<std::string>& arguments) {
  std::vector<std::string> expanded;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    std::string path;
    if (argument.starts_with("--flagfile=")) {
      path = argument.substr(std::string_view("--flagfile=").size());
    } else if (argument == "--flagfile") {
      if (i + 1 == arguments.size()) return Fail(InvalidArgument("--flagfile needs a file name"));
      path = arguments[++i];
    } else {
      expanded.push_back(argument);
      continue;
    }
    if (path.empty()) return Fail(InvalidArgument("--flagfile needs a file name"));
    TESSERA_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFlagfileBytes));
    TESSERA_ASSIGN_OR_RETURN(const auto flags, ParseFlagfile(text, path));
    expanded.insert(expanded.end(), flags.begin(), flags.end());
  }
  return expanded;
}

}  // namespace tessera::cli
