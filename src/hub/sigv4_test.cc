// SPDX-License-Identifier: Apache-2.0
//
// Against the published signatures: Amazon's signing test suite (service "service", one instant,
// one key), and the examples for S3 in its reference ("Authenticating Requests: Using the
// Authorization Header").
#include "hub/sigv4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/http.h"

namespace tessera::hub {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using Headers = std::vector<std::pair<std::string, std::string>>;

constexpr int64_t kSuiteTime = 1440938160;  // 2015-08-30T12:36:00Z

AwsSettings Suite() {
  AwsSettings aws;
  aws.access_key = "AKIDEXAMPLE";
  aws.secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
  return aws;
}

std::string SignatureOf(const Headers& headers) {
  for (const auto& [name, value] : headers)
    if (name == "Authorization") return value.substr(value.rfind('=') + 1);
  return "";
}

std::string OfSuite(const std::string& path, Headers headers = {}) {
  const std::string url = "https://example.amazonaws.com" + path;
  return SignatureOf(SignGet(Suite(), {url, "service", kSuiteTime, std::move(headers)}));
}

TEST(SigV4, GivesTheSignaturesOfTheTestSuite) {
  EXPECT_EQ(OfSuite("/"), "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  EXPECT_EQ(OfSuite(""), OfSuite("/")) << "an empty path is a slash";
  EXPECT_EQ(OfSuite("/?Param2=value2&Param1=value1"),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
  EXPECT_EQ(OfSuite("/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1"),
            "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac");
  EXPECT_EQ(OfSuite("//"), "c88bcd3d312d75078c0cd961d6deae3f4c754924b01669efcfcb439fd5e5b76e");
  EXPECT_EQ(OfSuite("/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f");
}

TEST(SigV4, SignsEscapedPathsAsTheyStand) {
  EXPECT_EQ(OfSuite(EscapePath("/\u1234")),
            "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
  EXPECT_EQ(OfSuite(EscapePath("/example space/")),
            "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741");
}

TEST(SigV4, SignsFurtherHeaders) {
  EXPECT_EQ(OfSuite("/", {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}}),
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
  AwsSettings aws = Suite();
  aws.session_token = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
  const Headers headers =
      SignGet(aws, {"https://example.amazonaws.com/", "service", kSuiteTime, {}});
  EXPECT_EQ(SignatureOf(headers),
            "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8");
  EXPECT_THAT(headers, Contains(Pair("X-Amz-Security-Token", aws.session_token)));
}

TEST(SigV4, GivesTheSignaturesOfTheExamplesForS3) {
  AwsSettings aws;
  aws.access_key = "AKIAIOSFODNN7EXAMPLE";
  aws.secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  constexpr int64_t kTime = 1369353600;  // 2013-05-24T00:00:00Z
  const std::string base = "https://examplebucket.s3.amazonaws.com";
  const Headers object = SignGet(
      aws, {base + "/test.txt", "s3", kTime, {{"Range", "bytes=0-9"}, EmptyPayloadHeader()}});
  EXPECT_EQ(SignatureOf(object),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  const std::string list = base + "/?max-keys=2&prefix=J";
  EXPECT_EQ(SignatureOf(SignGet(aws, {list, "s3", kTime, {EmptyPayloadHeader()}})),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  const std::string lifecycle = base + "/?lifecycle";
  EXPECT_EQ(SignatureOf(SignGet(aws, {lifecycle, "s3", kTime, {EmptyPayloadHeader()}})),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(SigV4, NamesTheHostAsItIsSent) {
  const auto host = [](std::string url) {
    return SignGet(Suite(), {url, "s3", kSuiteTime, {}}).front();
  };
  EXPECT_THAT(host("http://127.0.0.1:9000/b"), Pair("Host", "127.0.0.1:9000"));
  EXPECT_THAT(host("https://b.s3.eu-north-1.amazonaws.com:443/k"),
              Pair("Host", "b.s3.eu-north-1.amazonaws.com"));
  EXPECT_THAT(host("http://b:80?x"), Pair("Host", "b"));
}

TEST(SigV4, ShowsNoSecret) {
  AwsSettings aws = Suite();
  for (const auto& [name, value] : SignGet(aws, {"https://h/", "s3", kSuiteTime, {}}))
    EXPECT_THAT(value, Not(HasSubstr(aws.secret_key)));
}

}  // namespace
}  // namespace tessera::hub
