// SPDX-License-Identifier: Apache-2.0
#include "gateway/files/file_sender.h"

#include <gtest/gtest.h>

#include <fstream>

#include "net/client.h"
#include "net/server.h"
#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

using testing::TempDir;

std::string RangeOf(std::string_view header, uint64_t size) {
  const auto range = ReadRange(header, size);
  if (!range.has_value()) return "outside";
  if (!range->has_value()) return "none";
  return std::to_string((*range)->begin) + "-" + std::to_string((*range)->end);
}

TEST(ReadRange, OneRangeOrNone) {
  EXPECT_EQ(RangeOf("bytes=0-0", 10), "0-1");
  EXPECT_EQ(RangeOf("bytes=9-9", 10), "9-10");
  EXPECT_EQ(RangeOf("bytes=3-", 10), "3-10");
  EXPECT_EQ(RangeOf("bytes=3-99", 10), "3-10");
  EXPECT_EQ(RangeOf("bytes=3-18446744073709551615", 10), "3-10");
  EXPECT_EQ(RangeOf("bytes=-4", 10), "6-10");
  EXPECT_EQ(RangeOf("bytes=-40", 10), "0-10");
  for (const char* outside : {"bytes=10-", "bytes=10-11", "bytes=-0"})
    EXPECT_EQ(RangeOf(outside, 10), "outside") << outside;
  EXPECT_EQ(RangeOf("bytes=-1", 0), "outside");
  EXPECT_EQ(RangeOf("bytes=0-", 0), "outside");
  for (const char* none : {"", "bytes=", "bytes=-", "bytes=5-4", "bytes=a-b", "bytes=0-1,3-4",
                           "items=0-1", "bytes=99999999999999999999-", "bytes=+1-2"})
    EXPECT_EQ(RangeOf(none, 10), "none") << none;
}

class FileSenderTest : public ::testing::Test {
 protected:
  FileSenderTest() {
    for (int i = 0; i < 3'000'000; ++i) bytes_ += static_cast<char>(i * 31 + i / 251);
    std::ofstream(dir_.path() / "big", std::ios::binary) << bytes_;
    std::filesystem::create_symlink(dir_.path() / "big", dir_.path() / "link");
    std::filesystem::create_directory(dir_.path() / "folder");
    server_ = *net::Server::Start(
        {}, [this](const net::Request& request, const net::ResponseWriter& writer) {
          const Status sent = sender_->Send(dir_.path() / request.segments[0], request,
                                            {{"ETag", "\"e\""}}, writer);
          if (!sent.ok()) (void)writer.Send(net::Response::Text(404, sent.ToString()));
        });
  }
  net::Response Get(const std::string& target, net::Headers headers = {}) {
    net::HttpClient client({.port = server_->port()});
    auto response = client.Call({.method = "GET", .target = target, .headers = std::move(headers)});
    EXPECT_TRUE(response.has_value()) << response.error().ToString();
    return response.has_value() ? *std::move(response) : net::Response();
  }

  const TempDir dir_;
  std::string bytes_;
  const std::unique_ptr<FileSender> sender_ = *FileSender::Start();
  std::unique_ptr<net::Server> server_;
};

TEST_F(FileSenderTest, SendsAllOfIt) {
  const net::Response response = Get("/big");
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.body == bytes_);
  EXPECT_EQ(response.headers.Find("Accept-Ranges"), "bytes");
}

TEST_F(FileSenderTest, SendsARange) {
  const net::Response part = Get("/big", {{"Range", "bytes=1000000-2000000"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.headers.Find("Content-Range"), "bytes 1000000-2000000/3000000");
  EXPECT_TRUE(part.body == bytes_.substr(1000000, 1000001));
  const net::Response outside = Get("/big", {{"Range", "bytes=3000000-"}});
  EXPECT_EQ(outside.status, 416);
  EXPECT_EQ(outside.headers.Find("Content-Range"), "bytes */3000000");
  EXPECT_EQ(Get("/big", {{"Range", "bytes=0-0"}, {"If-Range", "\"e\""}}).body.size(), 1u);
  EXPECT_EQ(Get("/big", {{"Range", "bytes=0-0"}, {"If-Range", "\"other\""}}).status, 200);
}

TEST_F(FileSenderTest, SendsOnlyRegularFiles) {
  for (const char* target : {"/absent", "/link", "/folder"})
    EXPECT_EQ(Get(target).status, 404) << target;
}

}  // namespace
}  // namespace tessera::gateway
