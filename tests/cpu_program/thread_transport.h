// SPDX-License-Identifier: Apache-2.0
//
// ThreadTransport: a group whose ranks are threads, each with a session of its own, as if they were
// processes: what a rank did not get does not reach it. For tests of what processes do, without
// starting any.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/transport.h"
#include "tensor/convert.h"

namespace tessera::testing {

class ThreadTransport final : public runtime::Transport {
 public:
  /// One for each rank, to be used in a thread each.
  static std::vector<std::shared_ptr<ThreadTransport>> Group(int ranks) {
    const auto shared = std::make_shared<Shared>(ranks);
    std::vector<std::shared_ptr<ThreadTransport>> group;
    for (int rank = 0; rank < ranks; ++rank)
      group.push_back(std::shared_ptr<ThreadTransport>(new ThreadTransport(shared, rank)));
    return group;
  }

  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(shared_->data.size()); }
  runtime::Neighbours neighbours() const override { return {ranks(), rank_, ranks()}; }

  void Meet() override { shared_->all.arrive_and_wait(); }

  void Broadcast(std::span<std::byte> bytes) override {
    Between(bytes.data(), [&] {
      if (rank_ != 0) std::copy_n(DataOf<std::byte>(0), bytes.size(), bytes.data());
    });
  }

  void Scatter(float* data, const runtime::SegmentSet& set,
               std::span<const int64_t> begins) override {
    const int64_t begin = begins[static_cast<size_t>(rank_)];
    const int64_t count = begins[static_cast<size_t>(rank_) + 1] - begin;
    Between(data, [&] {
      for (int peer = 0; peer < ranks(); ++peer)
        for (int64_t i = set.Before(peer); peer != rank_ && i < set.Before(peer + 1); ++i)
          Receive(DataOf<float>(peer) + i * set.floats + begin, count,
                  data + i * set.floats + begin, segments_as_bf16);
    });
    ++scatters;
    floats += count * (set.Before(ranks()) - set.counts[static_cast<size_t>(rank_)]);
  }

  void AllGather(float* data, std::span<const int64_t> begins) override {
    Between(data, [&] {
      for (int peer = 0; peer < ranks(); ++peer) {
        const int64_t begin = begins[static_cast<size_t>(peer)];
        const int64_t count = begins[static_cast<size_t>(peer) + 1] - begin;
        if (peer == rank_) continue;
        Receive(DataOf<float>(peer) + begin, count, data + begin, sums_as_bf16);
        floats += count;
      }
    });
  }

  void GatherColumns(const runtime::ColumnsOf& matrix) override {
    Between(matrix.data, [&] {
      for (int peer = 1; rank_ == 0 && peer < ranks(); ++peer) {
        const int64_t begin = matrix.begins[static_cast<size_t>(peer)];
        const int64_t count = matrix.begins[static_cast<size_t>(peer) + 1] - begin;
        for (int64_t row = 0; row < matrix.rows; ++row)
          std::copy_n(DataOf<float>(peer) + row * matrix.columns + begin, count,
                      matrix.data + row * matrix.columns + begin);
      }
    });
  }

  [[noreturn]] void Abort(std::string_view why) override {
    std::fprintf(stderr, "rank %d: %.*s\n", rank_, static_cast<int>(why.size()), why.data());
    std::abort();
  }

  // Of this rank: exchanges in which it got its share only, and floats of sums that reached it.
  int64_t scatters = 0;
  int64_t floats = 0;
  // What reaches this rank is rounded to bfloat16: the segments of its share; finished sums.
  bool segments_as_bf16 = false;
  bool sums_as_bf16 = false;

 private:
  struct Shared {
    explicit Shared(int ranks) : all(ranks), data(static_cast<size_t>(ranks)) {}
    std::barrier<> all;
    std::vector<void*> data;
  };
  ThreadTransport(std::shared_ptr<Shared> shared, int rank)
      : shared_(std::move(shared)), rank_(rank) {}

  /// Runs `copy` while every rank's data is as it gave it.
  template <class Copy>
  void Between(void* data, const Copy& copy) {
    shared_->data[static_cast<size_t>(rank_)] = data;
    shared_->all.arrive_and_wait();
    copy();
    shared_->all.arrive_and_wait();
  }
  static void Receive(const float* from, int64_t count, float* to, bool as_bf16) {
    std::transform(from, from + count, to, [&](float value) {
      return as_bf16 ? tensor::BFloat16ToFloat(tensor::FloatToBFloat16(value)) : value;
    });
  }
  template <class T>
  const T* DataOf(int rank) const {
    return static_cast<const T*>(shared_->data[static_cast<size_t>(rank)]);
  }

  const std::shared_ptr<Shared> shared_;
  const int rank_;
};

}  // namespace tessera::testing
