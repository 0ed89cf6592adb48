// SPDX-License-Identifier: Apache-2.0
#include "gateway/files/multipart.h"

#include <gtest/gtest.h>

#include <vector>

#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

struct Part {
  PartHead head;
  std::string bytes;
  bool is_whole = false;
};

class Collector final : public MultipartSink {
 public:
  Status OnPart(const PartHead& head) override {
    parts.push_back({head, "", false});
    return {};
  }
  Status OnPartBytes(std::string_view bytes) override {
    EXPECT_FALSE(bytes.empty());
    parts.back().bytes += bytes;
    return {};
  }
  Status OnPartEnd() override {
    parts.back().is_whole = true;
    return {};
  }
  std::vector<Part> parts;
};

/// In pieces of `grain`; the parts, or the error.
Result<std::vector<Part>> Read(std::string_view form, size_t grain = SIZE_MAX) {
  Collector collector;
  MultipartReader reader("xyz", &collector);
  while (!form.empty()) {
    TESSERA_RETURN_IF_ERROR(reader.Feed(form.substr(0, grain)));
    form.remove_prefix(std::min(grain, form.size()));
  }
  TESSERA_RETURN_IF_ERROR(reader.Finish());
  return collector.parts;
}

std::string Form(std::string_view head, std::string_view bytes) {
  return "--xyz\r\n" + std::string(head) + "\r\n\r\n" + std::string(bytes) + "\r\n--xyz--\r\n";
}

std::string NameOf(std::string_view disposition) {
  const auto parts = Read(Form("Content-Disposition: " + std::string(disposition), "x"));
  if (!parts.has_value()) return parts.error().message();
  return (*parts)[0].head.filename;
}

TEST(Multipart, PartsComeTheSameHoweverTheyAreCut) {
  const std::string form =
      "ignored\r\n--xyz  \r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch"
      "\r\n--xyz\r\ncontent-type: text/csv\r\ncontent-disposition: form-data; name=file; "
      "filename=\"a b.csv\"\r\n\r\n--xy\r\n--xy\r\r\n\r\n\r\n--xyz\r\n"
      "Content-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n--xyz--\r\nbehind it";
  for (size_t grain = 1; grain < 80; ++grain) {
    const auto parts = Read(form, grain);
    ASSERT_TRUE(parts.has_value()) << grain << ": " << parts.error().ToString();
    ASSERT_EQ(parts->size(), 3u);
    EXPECT_EQ((*parts)[0].head.name, "purpose");
    EXPECT_FALSE((*parts)[0].head.is_file);
    EXPECT_EQ((*parts)[0].bytes, "batch");
    EXPECT_EQ((*parts)[1].head.filename, "a b.csv");
    EXPECT_EQ((*parts)[1].head.content_type, "text/csv");
    EXPECT_EQ((*parts)[1].bytes, "--xy\r\n--xy\r\r\n\r\n") << grain;
    EXPECT_EQ((*parts)[2].bytes, "");
    EXPECT_TRUE((*parts)[2].is_whole);
  }
}

TEST(Multipart, NamesAsClientsWriteThem) {
  EXPECT_EQ(NameOf("form-data; name=\"file\"; filename=\"a.txt\""), "a.txt");
  EXPECT_EQ(NameOf("form-data; name=file; filename=a.txt"), "a.txt");
  EXPECT_EQ(NameOf("FORM-DATA;NAME=\"file\" ; FileName = \"a;b.txt\""), "a;b.txt");
  EXPECT_EQ(NameOf("form-data; name=\"file\"; filename=\"a\\\"b\\\\c.txt\""), "a\"b\\c.txt")
      << "curl";
  EXPECT_EQ(NameOf("form-data; name=\"file\"; filename=\"a%22b%0D%0a%41.txt\""), "a\"b\r\n%41.txt")
      << "browsers";
  EXPECT_EQ(NameOf("form-data; name=\"file\"; filename=\"C:\\x\\y.txt\""), "C:\\x\\y.txt");
  EXPECT_EQ(NameOf("form-data; name=\"file\"; filename=\"\xc3\xbc.txt\""), "\xc3\xbc.txt");
  EXPECT_EQ(NameOf("form-data; name=\"file\"; filename*=utf-8''%C3%BC.txt"), "\xc3\xbc.txt");
}

TEST(Multipart, WhatIsNoPartIsRefused) {
  for (const char* head :
       {"", "Content-Type: a/b", "no colon", ": x", "Content-Disposition: attachment; name=\"a\"",
        "Content-Disposition: form-data", "Content-Disposition: form-data; name=\"a",
        "Content-Disposition: form-data; name=\"a\" x", "Content-Disposition: form-data; x",
        "Content-Disposition: form-data; name=a; name=b",
        "Content-Disposition: form-data; name=\"\xff\"",
        "Content-Disposition: form-data; name=a; filename*=latin-1''x",
        "Content-Disposition: form-data; name=a; filename*=utf-8''%f",
        "Content-Disposition: form-data; name=a\x01",
        "Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=a"})
    EXPECT_EQ(StatusOf(Read(Form(head, "x"))).code(), Code::kInvalidArgument) << head;
}

TEST(Multipart, WhatIsNoFormIsRefused) {
  for (const char* form :
       {"", "--xyz", "--xyz\r\n", "--xyz-", "--xyzz\r\n", "--xyz x\r\n",
        "--xyz\r\nContent-Disposition: form-data; name=a\r\n\r\nhalf",
        "--xyz\r\nContent-Disposition: form-data; name=a\r\n\r\nhalf\r\n--xyz", "--abc\r\n"})
    EXPECT_EQ(StatusOf(Read(form)).code(), Code::kInvalidArgument) << form;
}

TEST(Multipart, LimitsHoldAtTheirEdges) {
  const std::string part = "--xyz\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n";
  std::string form;
  for (size_t i = 0; i < kMultipartPartsMax; ++i) form += part;
  EXPECT_EQ(Read(form + "--xyz--")->size(), kMultipartPartsMax);
  EXPECT_EQ(StatusOf(Read(form + part + "--xyz--")).code(), Code::kResourceExhausted);

  const std::string head = "Content-Disposition: form-data; name=a; filename=";
  const auto with_head = [&](size_t size) {
    return StatusOf(Read(Form(head + std::string(size - head.size(), 'n'), "x"), 1000)).code();
  };
  EXPECT_EQ(with_head(kPartHeadBytesMax), Code::kOk);
  EXPECT_EQ(with_head(kPartHeadBytesMax + 1), Code::kResourceExhausted);

  const auto behind = [&](size_t size) {
    return StatusOf(Read(std::string(size - 2, 'p') + "\r\n" + part + "--xyz--", 100)).code();
  };
  EXPECT_EQ(behind(kMultipartPreambleBytesMax), Code::kOk);
  EXPECT_EQ(behind(kMultipartPreambleBytesMax + 1), Code::kInvalidArgument);
}

TEST(Multipart, BoundariesOfContentTypes) {
  EXPECT_EQ(*MultipartBoundary("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(*MultipartBoundary("Multipart/Form-Data; charset=utf-8; boundary=\"a b\""), "a b");
  EXPECT_EQ(*MultipartBoundary("multipart/form-data; boundary=" + std::string(70, 'a')),
            std::string(70, 'a'));
  for (const std::string& type :
       {std::string("multipart/form-data"), std::string("multipart/mixed; boundary=a"),
        std::string(), std::string("multipart/form-data; boundary="),
        std::string("multipart/form-data; boundary=\"a \""),
        std::string("multipart/form-data; boundary=\"a\x01\""),
        "multipart/form-data; boundary=" + std::string(71, 'a')})
    EXPECT_FALSE(MultipartBoundary(type).has_value()) << type;
}

}  // namespace
}  // namespace tessera::gateway
