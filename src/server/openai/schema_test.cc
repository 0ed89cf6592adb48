// SPDX-License-Identifier: Apache-2.0
#include "server/openai/schema.h"

#include <gtest/gtest.h>

#include "support/field_table.h"

namespace tessera::server::openai {
namespace {

TEST(Schema, TheReferencePageListsEveryField) {
  testing::ExpectFieldTable(RequestFields(),
                            {{kCompletions, "completions"},
                             {kChat, "chat"},
                             {kTokenize, "tokenize"},
                             {kDetokenize, "detokenize"},
                             {kApplyTemplate, "apply-template"},
                             {kEmbeddings, "embeddings"}},
                            "fields");
}

}  // namespace
}  // namespace tessera::server::openai
