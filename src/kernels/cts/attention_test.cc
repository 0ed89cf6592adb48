// SPDX-License-Identifier: Apache-2.0
//
// Attention and the KV pages: reference against double, vector kernels against the reference bit
// for bit, and invariance to chunking, row grouping and page placement. Slots that a row must not
// see hold NaN.
#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels/catalog.h"
#include "kernels/cts/data.h"
#include "support/scale.h"

namespace tessera::kernels {
namespace {

struct Shape {
  int64_t head_dim, kv_heads, group, page_tokens, positions;
  int64_t window = 0;
  float softcap = 0;
  KvType type = KvType::kF16;
};

std::ostream& operator<<(std::ostream& os, const Shape& s) {
  return os << "dim " << s.head_dim << " kv heads " << s.kv_heads << " group " << s.group
            << " page " << s.page_tokens << " positions " << s.positions << " window " << s.window
            << " softcap " << s.softcap << (s.type == KvType::kInt8 ? " int8" : " f16");
}

/// A sequence of `positions` random K and V rows in shuffled pages, and queries for every position.
class Sequence {
 public:
  Sequence(const Shape& shape, uint64_t seed, KvWriteFn write, bool reverse_pages = false)
      : shape_(shape),
        layout_{.layers = 2,
                .kv_heads = shape.kv_heads,
                .head_dim = shape.head_dim,
                .page_tokens = shape.page_tokens,
                .type = shape.type},
        pages_(static_cast<size_t>((shape.positions + shape.page_tokens - 1) / shape.page_tokens)),
        pool_(static_cast<int64_t>(pages_.size() + 1) * layout_.PageBytes()),
        scratch_(AttentionScratchBytes(shape.head_dim, shape.group)) {
    // NaN in every f16 element and every scale.
    std::memset(pool_.data(), 0xff, static_cast<size_t>(pool_.size()));
    std::iota(pages_.begin(), pages_.end(), 1);
    if (reverse_pages) std::reverse(pages_.begin(), pages_.end());
    Random random(seed);
    const int64_t kv = shape.kv_heads * shape.head_dim;
    k = cts::RandomFloats(random, shape.positions * kv);
    v = cts::RandomFloats(random, shape.positions * kv);
    q = cts::RandomFloats(random, shape.positions * kv * shape.group);
    Write(write);
  }

  /// k and v to their pages.
  void Write(KvWriteFn write) {
    const int64_t kv = shape_.kv_heads * shape_.head_dim;
    write({.layout = layout_,
           .pool = pool_.data(),
           .pages = pages_.data(),
           .layer = 1,
           .k = k.data(),
           .ldk = kv,
           .v = v.data(),
           .ldv = kv,
           .start = 0,
           .rows = shape_.positions,
           .head_begin = 0,
           .head_end = shape_.kv_heads});
  }

  int64_t OutColumns() const { return shape_.kv_heads * shape_.group * shape_.head_dim; }

  AttentionArgs Args(int64_t start, int64_t rows, float* out) {
    const int64_t columns = OutColumns();
    return {.layout = layout_,
            .pool = pool_.data(),
            .pages = pages_.data(),
            .layer = 1,
            .q = q.data() + start * columns,
            .ldq = columns,
            .out = out,
            .ld_out = columns,
            .start = start,
            .rows = rows,
            .head_begin = 0,
            .head_end = shape_.kv_heads,
            .group = shape_.group,
            .scale = 0.125f,
            .softcap = shape_.softcap,
            .window = shape_.window,
            .scratch = scratch_.data()};
  }

  std::vector<float> Run(AttentionFn fn, int64_t start, int64_t rows) {
    std::vector<float> out(static_cast<size_t>(rows * OutColumns()), NAN);
    fn(Args(start, rows, out.data()));
    return out;
  }

  cts::Buffer& pool() { return pool_; }
  std::vector<float> k, v, q;

 private:
  Shape shape_;
  KvLayout layout_;
  std::vector<int32_t> pages_;
  cts::Buffer pool_, scratch_;
};

KvWriteFn Writer(const Isa& isa) {
  return std::get<KvWriteFn>(Find(Op::kKvWrite, std::nullopt, RowsClass::kAny, isa)->fn);
}
AttentionFn Attend(const Isa& isa) {
  return std::get<AttentionFn>(Find(Op::kAttention, std::nullopt, RowsClass::kAny, isa)->fn);
}
const Isa& Machine() {
  static const Isa machine = ReadIsa();
  return machine;
}

bool SameBytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

/// What reading back element d of a row of K or V gives.
double Stored(KvType type, const float* x, int64_t dim, int64_t d) {
  if (type == KvType::kF16) return double{ref::HalfToFloat(ref::FloatToHalf(x[d]))};
  float amax = 0;
  for (int64_t i = 0; i < dim; ++i) amax = std::max(amax, std::abs(x[i]));
  return std::nearbyint(x[d] * (127.0f / amax)) * double{amax / 127.0f};
}

/// Softmax in double over the stored values of K and V.
std::vector<double> Oracle(const Sequence& s, const Shape& shape, int64_t position, int64_t head) {
  const int64_t dim = shape.head_dim, kv = shape.kv_heads * dim, kv_head = head / shape.group;
  const float* q = s.q.data() + (position * shape.kv_heads * shape.group + head) * dim;
  const int64_t from = shape.window > 0 ? std::max<int64_t>(0, position + 1 - shape.window) : 0;
  std::vector<double> score, out(static_cast<size_t>(dim));
  double top = -1e300, sum = 0;
  for (int64_t p = from; p <= position; ++p) {
    double dot = 0;
    const float* k = s.k.data() + p * kv + kv_head * dim;
    for (int64_t d = 0; d < dim; ++d) dot += q[d] * Stored(shape.type, k, dim, d);
    dot *= 0.125;
    if (shape.softcap > 0) dot = shape.softcap * std::tanh(dot / shape.softcap);
    score.push_back(dot);
    top = std::max(top, dot);
  }
  for (int64_t p = from; p <= position; ++p) {
    const double e = std::exp(score[static_cast<size_t>(p - from)] - top);
    sum += e;
    const float* v = s.v.data() + p * kv + kv_head * dim;
    for (int64_t d = 0; d < dim; ++d)
      out[static_cast<size_t>(d)] += e * Stored(shape.type, v, dim, d);
  }
  for (double& o : out) o /= sum;
  return out;
}

/// Each in both types.
const std::vector<Shape>& Shapes() {
  static const std::vector<Shape> shapes = [] {
    std::vector<Shape> all = {
        {.head_dim = 8, .kv_heads = 2, .group = 4, .page_tokens = 16, .positions = 70},
        {.head_dim = 64, .kv_heads = 3, .group = 3, .page_tokens = 32, .positions = 150},
        {.head_dim = 64, .kv_heads = 1, .group = 1, .page_tokens = 64, .positions = 530},
        {.head_dim = 80, .kv_heads = 1, .group = 2, .page_tokens = 16, .positions = 131},
        {.head_dim = 128, .kv_heads = 1, .group = 8, .page_tokens = 48, .positions = 1100},
        {.head_dim = 96,
         .kv_heads = 1,
         .group = 7,
         .page_tokens = 64,
         .positions = 90,
         .window = 0,
         .softcap = 3},
        {.head_dim = 64,
         .kv_heads = 1,
         .group = 2,
         .page_tokens = 32,
         .positions = 700,
         .window = 100},
        {.head_dim = 24,
         .kv_heads = 1,
         .group = 1,
         .page_tokens = 16,
         .positions = 64,
         .window = 1},
        {.head_dim = 64,
         .kv_heads = 1,
         .group = 3,
         .page_tokens = 32,
         .positions = 1200,
         .window = 600,
         .softcap = 30},
    };
    for (size_t i = all.size(); i > 0; --i) {
      all.push_back(all[i - 1]);
      all.back().type = KvType::kInt8;
    }
    return all;
  }();
  return shapes;
}

TEST(KvWrite, EqualsTheReference) {
  for (const Shape& shape : Shapes()) {
    Sequence expected(shape, 5, Writer(Isa{})), actual(shape, 5, Writer(Machine()));
    ASSERT_EQ(std::memcmp(expected.pool().data(), actual.pool().data(),
                          static_cast<size_t>(actual.pool().size())),
              0)
        << shape;
  }
}

TEST(KvWrite, Int8OfZeroTinyHugeAndBrokenRowsEqualsTheReference) {
  const Shape shape{.head_dim = 40,
                    .kv_heads = 1,
                    .group = 1,
                    .page_tokens = 16,
                    .positions = 7,
                    .type = KvType::kInt8};
  Sequence expected(shape, 6, Writer(Isa{})), actual(shape, 6, Writer(Isa{}));
  const float first[] = {0.0f, 1e-35f, 3e38f, INFINITY, NAN, -1.0f, 0x1p-100f};
  for (Sequence* s : {&expected, &actual}) {
    for (size_t position = 0; position < 7; ++position) {
      for (size_t d = 0; d < 40; ++d) {
        s->k[position * 40 + d] = d % 9 == 4 ? first[position] : position == 5 ? 0.25f : 0.0f;
        s->v[position * 40 + d] = d == 39 ? first[position] : 0.0f;
      }
    }
  }
  expected.Write(Writer(Isa{}));
  actual.Write(Writer(Machine()));
  EXPECT_EQ(std::memcmp(expected.pool().data(), actual.pool().data(),
                        static_cast<size_t>(actual.pool().size())),
            0);
}

TEST(Attention, ReferenceAgreesWithDouble) {
  for (const Shape& shape : Shapes()) {
    Sequence s(shape, 11, Writer(Isa{}));
    for (const int64_t position : {int64_t{0}, shape.positions / 2, shape.positions - 1}) {
      const std::vector<float> out = s.Run(Attend(Isa{}), position, 1);
      for (int64_t head = 0; head < shape.kv_heads * shape.group; ++head) {
        const std::vector<double> expected = Oracle(s, shape, position, head);
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          ASSERT_NEAR(out[static_cast<size_t>(head * shape.head_dim + d)],
                      expected[static_cast<size_t>(d)], 4e-6)
              << shape << " at " << position;
        }
      }
    }
  }
}

/// Vector kernels of attention that this machine runs; the rest is named in the log.
std::vector<const Entry*> Runnable() {
  std::vector<const Entry*> entries;
  for (const Entry& entry : Catalog()) {
    if (entry.op != Op::kAttention || entry.isa == KernelIsa::kRef) continue;
    if (Runs(entry.isa, Machine())) {
      entries.push_back(&entry);
    } else {
      std::printf("skipped: %s needs %s\n", std::string(entry.name).c_str(),
                  std::string(Name(entry.isa)).c_str());
    }
  }
  return entries;
}

TEST(Attention, EqualsTheReferenceBitForBit) {
  for (const Shape& shape : Shapes()) {
    Sequence s(shape, 12, Writer(Isa{}));
    for (const int64_t rows :
         testing::Scaled<std::vector<int64_t>>({1, 2, 3, 5, 16, 17, 40}, {1, 5, 17})) {
      for (const int64_t start : {int64_t{0}, shape.positions / 3, shape.positions - rows}) {
        const std::vector<float> expected = s.Run(Attend(Isa{}), start, rows);
        for (const Entry* entry : Runnable()) {
          const std::vector<float> actual = s.Run(std::get<AttentionFn>(entry->fn), start, rows);
          ASSERT_TRUE(SameBytes(expected, actual))
              << entry->name << " " << shape << " start " << start << " rows " << rows;
        }
      }
    }
  }
}

TEST(Attention, EveryGroupSizeEqualsTheReference) {
  for (int64_t group = 1; group <= 13; ++group) {
    const Shape shape{.head_dim = 40,
                      .kv_heads = 2,
                      .group = group,
                      .page_tokens = 16,
                      .positions = 75,
                      .type = group % 2 == 0 ? KvType::kInt8 : KvType::kF16};
    Sequence s(shape, 20, Writer(Isa{}));
    const std::vector<float> expected = s.Run(Attend(Isa{}), 70, 5);
    for (const Entry* entry : Runnable()) {
      ASSERT_TRUE(SameBytes(expected, s.Run(std::get<AttentionFn>(entry->fn), 70, 5)))
          << entry->name << " " << shape;
    }
  }
}

TEST(Attention, ARowDependsOnNeitherChunkingNorPages) {
  for (const Shape& shape : Shapes()) {
    Sequence s(shape, 13, Writer(Machine())), moved(shape, 13, Writer(Machine()), true);
    const std::vector<float> whole = s.Run(Attend(Machine()), 0, shape.positions);
    ASSERT_TRUE(SameBytes(whole, moved.Run(Attend(Machine()), 0, shape.positions))) << shape;
    std::vector<float> parts;
    Random random(14);
    for (int64_t start = 0; start < shape.positions;) {
      const int64_t rows =
          std::min<int64_t>(1 + static_cast<int64_t>(random.Below(37)), shape.positions - start);
      const std::vector<float> part = s.Run(Attend(Machine()), start, rows);
      parts.insert(parts.end(), part.begin(), part.end());
      start += rows;
    }
    ASSERT_TRUE(SameBytes(whole, parts)) << shape;
  }
}

TEST(Attention, HeadsMayBeSplitAndOutputMayBeTheQueries) {
  const Shape shape = Shapes()[1];
  Sequence s(shape, 15, Writer(Machine()));
  const std::vector<float> whole = s.Run(Attend(Machine()), 100, 20);
  AttentionArgs args = s.Args(100, 20, s.q.data() + 100 * s.OutColumns());
  args.head_end = 1;
  Attend(Machine())(args);
  args.head_begin = 1;
  args.head_end = 3;
  Attend(Machine())(args);
  EXPECT_EQ(std::memcmp(args.out, whole.data(), whole.size() * 4), 0);
}

}  // namespace
}  // namespace tessera::kernels
