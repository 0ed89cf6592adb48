// SPDX-License-Identifier: Apache-2.0
#include "cli/option_groups.h"

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::cli {
namespace {

/// A verb with fewer shows one list.
constexpr size_t kLongList = 24;

struct Group {
  std::string_view heading;
  std::string_view flags;  // Long names with a space before and after each.
};
constexpr Group kGroups[] = {
    {"Bundle",
     " --cache-dir --max-seq-len --compile-target --quantize --ensure-compile --ensure-export --tp "
     "--allow-uneven --verify "},
    {"Ranks as processes", " --rank-processes --hostfile --mpirun-options --rank-restarts "},
    {"Downloads", " --hf-cache-dir --revision --offline "},
    {"Machine", " --device --device_ids --threads --isa --kv-memory --kv-dtype "},
    {"A precompiled model, file by file, instead of MODEL",
     " --tokenizer_json --tokenizer_config_json --model_config --program --vmfb --parameters "},
    {"Address and access",
     " --host --port --listen-fd --lease --api-key --api-keys --cors-origin --tls-cert --tls-key "
     "--tls-client-ca "
     "--allow-unauthenticated "},
    {"Answers",
     " --served-model-name --chat-template --trust-request-chat-template --tool-call-parser "
     "--reasoning-parser "},
    {"Load",
     " --max-batch --queue-length --target-itl-ms --speculate --prefix-cache --kv-disk "
     "--kv-disk-size --http-threads --drain-seconds "},
    {"Metrics and traces", " --metrics-compat --otlp-endpoint "},
    {"Sampling", " --temperature --top-p --top-k --min-p --seed "},
};
constexpr std::string_view kLibraryPrefix = "--benchmark_";
constexpr std::string_view kLibraryHeading = "Measurement and report, as Google Benchmark has them";

std::string_view HeadingOf(std::string_view flag) {
  if (flag.starts_with(kLibraryPrefix)) return kLibraryHeading;
  const std::string word = " " + std::string(flag) + " ";
  for (const Group& group : kGroups)
    if (group.flags.find(word) != std::string_view::npos) return group.heading;
  return {};
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    // The library ends each heading's list with two empty lines.
    for (size_t at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n", at))
      text.erase(at, 1);
    return text;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter() {
  return std::make_shared<HelpFormatter>();
}

void GroupOptions(CLI::App* verb) {
  const auto options = verb->get_options();
  if (options.size() < kLongList) return;
  for (CLI::Option* option : options) {
    if (option->get_lnames().empty()) continue;
    const std::string flag = "--" + option->get_lnames().front();
    const std::string_view heading = HeadingOf(flag);
    if (!heading.empty()) option->group(std::string(heading));
  }
}

}  // namespace tessera::cli
