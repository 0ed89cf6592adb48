// SPDX-License-Identifier: Apache-2.0
#include "formats/npy/npy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fixtures.h"

namespace tessera::formats::npy {
namespace {

using tensor::DType;
using tensor::Shape;
using ::testing::HasSubstr;

std::string Error(std::string_view file) {
  const auto array = Read(AsBytes(file), "x.npy");
  return array.has_value() ? "accepted" : array.error().ToString();
}

std::string WithHeader(std::string_view header, std::string_view elements = "") {
  ByteWriter out;
  out.WriteText("\x93NUMPY");
  out.Write<uint8_t>(1);
  out.Write<uint8_t>(0);
  out.Write(static_cast<uint16_t>(header.size()));
  out.WriteText(header);
  out.WriteText(elements);
  return out.bytes();
}

TEST(Npy, WritesTheBytesThatNumpyWrites) {
  // np.save of np.array([[1, 2]], dtype=np.int64), NumPy 2.2.6.
  std::string expected = "\x93NUMPY";
  expected += std::string("\x01\x00\x76\x00", 4);
  expected += "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 2), }";
  expected.append(128 - 1 - expected.size(), ' ');
  expected += '\n';
  const int64_t values[] = {1, 2};
  expected += AsText(std::as_bytes(std::span(values)));
  EXPECT_EQ(*Write(DType::kI64, Shape{1, 2}, std::as_bytes(std::span(values))), expected);
}

TEST(Npy, ReadsBackWhatItWrites) {
  const std::string elements(48, 'e');
  for (const auto& [dtype, shape] : {std::pair{DType::kF16, Shape{24}},
                                     {DType::kF32, Shape{3, 4}},
                                     {DType::kF64, Shape{2, 3}},
                                     {DType::kI32, Shape{2, 2, 3}},
                                     {DType::kU8, Shape{48}},
                                     {DType::kBool, Shape{6, 8}}}) {
    const auto file = Write(dtype, shape, AsBytes(elements));
    ASSERT_TRUE(file.has_value());
    const auto array = Read(AsBytes(*file), "x.npy");
    ASSERT_TRUE(array.has_value()) << array.error().ToString();
    EXPECT_EQ(array->dtype, dtype);
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(AsText(array->bytes), elements);
    EXPECT_EQ((file->size() - elements.size()) % 64, 0U);
  }
  EXPECT_EQ(*Read(AsBytes(*Write(DType::kI64, Shape{}, AsBytes("12345678"))), "")->shape.Elements(),
            1);
  EXPECT_EQ(Write(DType::kQ4_0, Shape{32}, {}).error().code(), Code::kUnimplemented);
}

TEST(Npy, ReadsAFileOfTheExistingSystem) {
  const std::string file =
      testing::ReadAll(testing::Shared("samples/shark/bench/toy.run-flags.expected_logits.npy"));
  const auto array = Read(AsBytes(file), "logits");
  ASSERT_TRUE(array.has_value()) << array.error().ToString();
  EXPECT_EQ(array->dtype, DType::kF16);
  EXPECT_EQ(array->shape.ToString(), "[1,32,256]");
}

TEST(Npy, DamageIsNamed) {
  const std::string good = *Write(DType::kI64, Shape{1}, AsBytes("12345678"));
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_THAT(Error(good.substr(0, size)), HasSubstr("x.npy")) << size;
  EXPECT_THAT(Error(good + "x"), HasSubstr("1 bytes after the elements"));
  std::string bad = good;
  bad[0] = 'x';
  EXPECT_THAT(Error(bad), HasSubstr("wrong magic"));
  bad = good, bad[6] = 4;
  EXPECT_THAT(Error(bad), HasSubstr("NPY version 4.0"));
}

TEST(Npy, HeadersThatSayOtherThingsAreRefused) {
  const auto header = [](std::string_view shape) {
    return fmt::format("{{'descr': '<i8', 'fortran_order': False, 'shape': {}}}", shape);
  };
  EXPECT_EQ(Error(WithHeader(header("()"), "12345678")), "accepted");
  EXPECT_EQ(Error(WithHeader(header("(0, 5)"))), "accepted");
  for (const std::string_view shape :
       {"(", "(1", "(-1,)", "(1 2)", "1", "(99999999999999999999,)", "(1,1,1,1,1,1,1,1,1)",
        "(1,), 'shape': (1,)", "(1,), 'more': 1"})
    EXPECT_THAT(Error(WithHeader(header(shape), "12345678")), HasSubstr("the header is not"))
        << shape;
  EXPECT_THAT(Error(WithHeader(header("(4294967296, 4294967296)"))), HasSubstr("x.npy"));
  EXPECT_THAT(Error(WithHeader("{'descr': '<i8', 'fortran_order': True, 'shape': (1,)}")),
              HasSubstr("Fortran order"));
  EXPECT_THAT(Error(WithHeader("{'descr': '>i8', 'fortran_order': False, 'shape': (1,)}")),
              HasSubstr("elements of type \">i8\""));
  EXPECT_THAT(Error(WithHeader("")), HasSubstr("the header is not"));
}

TEST(Npy, HeadersHaveALimit) {
  ByteWriter out;
  out.WriteText("\x93NUMPY");
  out.Write<uint8_t>(2);
  out.Write<uint8_t>(0);
  std::string file = out.bytes();
  const auto with = [&](uint32_t length) {
    ByteWriter size;
    size.Write(length);
    std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (0,)}";
    header.resize(length, ' ');
    return Error(file + size.bytes() + header);
  };
  EXPECT_EQ(with(kMaxHeaderBytes - 1), "accepted");
  EXPECT_EQ(with(kMaxHeaderBytes), "accepted");
  EXPECT_THAT(with(kMaxHeaderBytes + 1), HasSubstr("a header of 65537 bytes"));
}

}  // namespace
}  // namespace tessera::formats::npy
