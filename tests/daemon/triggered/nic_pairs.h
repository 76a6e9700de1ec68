// Two endpoints of `sockets` in one process, each with a daemon's channels of the NIC, and the
// ranks' side of them.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "daemon/faults/faults.h"
#include "daemon/faults/faulty_transport.h"
#include "daemon/triggered/nic_channel.h"
#include "shm/atomic.h"
#include "shm/counter.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry {
inline void PrintTo(ErrorCode code, std::ostream* out) { *out << ErrorCodeText(code); }
}  // namespace ferry

namespace ferry::daemon {
using transport::Access;
using transport::MemoryRegion;
using transport::PeerId;

inline constexpr uint64_t kPatienceNs = 60'000'000'000;  // before a test calls it a hang
inline constexpr DeferredPool::Job kJob = 5;

// A node, with what a progress thread has.
class NicNode final : public transport::DeferredSink, public transport::CompletionSink {
 public:
  explicit NicNode(uint32_t entries, const std::string& fault = "") : pool_(entries) {
    transport::TransportOptions options;
    options.provider = "sockets";
    options.deferred_entries = entries;
    auto real = transport::CreateOfiTransport(options);
    EXPECT_TRUE(real.ok()) << real.status().ToString();
    transport_ = std::move(*real);
    if (!fault.empty()) {
      faults_ = std::move(*Faults::Parse(fault));
      transport_ = std::make_unique<FaultyTransport>(std::move(transport_), *faults_,
                                                     options.post_timeout_ns);
    }
    self_ = *transport_->AddPeer(transport_->Address());
    scratch_region_ = Register(&scratch_, sizeof(scratch_));
    pool_.Join(kJob, 1);
  }
  ~NicNode() override { channels_.clear(); }

  MemoryRegion Register(void* base, uint64_t bytes) {
    return *transport_->RegisterMemory(base, bytes, Access::kRemoteRead | Access::kRemoteWrite);
  }
  NicResources resources() {
    return {.transport = *transport_,
            .deferred = *transport_->deferred_work(),
            .pool = pool_,
            .self = self_,
            .scratch = &scratch_,
            .scratch_region = scratch_region_.handle};
  }
  NicChannel* Open(const NicChannelSpec& spec) {
    auto opened = NicChannel::Open(resources(), spec);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    NicChannel* channel = opened->get();
    channels_[spec.name] = std::move(*opened);
    if (channel->has_target()) {
      auto prepared = channel->PrepareTarget();
      EXPECT_TRUE(prepared.ok()) << prepared.status().ToString();
      EXPECT_TRUE(channel->AdoptTarget(std::move(*prepared)).ok());
    }
    return channel;
  }
  void Remove(const NicChannel* channel) {
    std::erase_if(channels_, [&](const auto& one) { return one.second.get() == channel; });
  }
  uint32_t Poll(uint64_t now_ns = MonotonicNs()) {
    int events = transport_->Poll(*this, 64, now_ns);
    events += transport_->deferred_work()->Poll(*this, now_ns);
    for (const auto& [name, channel] : channels_) {
      events += channel->is_active() ? static_cast<int>(channel->Poll(now_ns)) : 0;
    }
    return static_cast<uint32_t>(events);
  }

  void OnDeferredEnd(uint64_t context, ErrorCode code) override {
    const auto found = channels_.find(NicChannelOf(context));
    if (found != channels_.end()) {
      found->second->OnDeferredEnd(context, code);
    }
  }
  void OnComplete(uint64_t context, ErrorCode code) override {
    const auto found = channels_.find(NicChannelOf(context));
    if (found != channels_.end()) {
      found->second->OnWriteEnd(context, code);
    }
  }
  void OnReceive(PeerId, std::span<const std::byte>) override {}

  transport::Transport& transport() { return *transport_; }
  DeferredPool& pool() { return pool_; }

 private:
  std::unique_ptr<Faults> faults_;
  std::unique_ptr<transport::Transport> transport_;
  DeferredPool pool_;
  PeerId self_{};
  alignas(8) uint64_t scratch_ = 0;
  MemoryRegion scratch_region_;
  std::map<uint64_t, std::unique_ptr<NicChannel>> channels_;
};

// Memory and completion words of one end of many channels, each registered once.
struct EndMemory {
  EndMemory(NicNode& node, size_t channels, uint64_t channel_bytes)
      : bytes(channel_bytes), data(std::max<uint64_t>(channels * bytes, 1)), done(channels) {
    data_region = node.Register(data.data(), data.size());
    done_region = node.Register(done.data(), done.size() * sizeof(done[0]));
  }
  std::byte* DataOf(size_t channel) { return data.data() + channel * bytes; }
  uint64_t DoneOf(size_t channel) { return shm::LoadAcquire(done[channel].value); }

  uint64_t bytes;
  std::vector<std::byte> data;
  std::vector<shm::CounterLayout> done;
  MemoryRegion data_region;
  MemoryRegion done_region;
};

struct Options {
  size_t channels = 1;
  uint64_t bytes = 4096;
  bool ready = false;
  uint32_t entries = 504;
  uint32_t ahead = 2;
  uint64_t timeout_ns = kPatienceNs;
  std::string sender_fault = {};
};

class Pairs {
 public:
  explicit Pairs(const Options& options)
      : options_(options),
        sender_(std::make_unique<NicNode>(options.entries, options.sender_fault)),
        receiver_(std::make_unique<NicNode>(options.entries)),
        send_memory_(*sender_, options.channels, options.bytes),
        receive_memory_(*receiver_, options.channels, options.bytes) {
    receiver_of_sender_ = *sender_->transport().AddPeer(receiver_->transport().Address());
    sender_of_receiver_ = *receiver_->transport().AddPeer(sender_->transport().Address());
    for (size_t i = 0; i < options.channels; ++i) {
      sends.push_back(sender_->Open(Spec(i, /*is_send=*/true)));
      receives.push_back(receiver_->Open(Spec(i, /*is_send=*/false)));
      receives[i]->Connect(sends[i]->target());
      sends[i]->Connect(receives[i]->target());
    }
  }

  NicChannelSpec Spec(size_t i, bool is_send) {
    EndMemory& memory = is_send ? send_memory_ : receive_memory_;
    return {.name = i + 1,
            .job = kJob,
            .is_send = is_send,
            .is_ready = options_.ready,
            .peer = is_send ? receiver_of_sender_ : sender_of_receiver_,
            .bytes = options_.bytes,
            .memory = memory.DataOf(i),
            .region = memory.data_region.handle,
            .done = &memory.done[i],
            .done_place = {memory.done_region.remote_base + i * sizeof(shm::CounterLayout),
                           memory.done_region.key},
            .ahead = options_.ahead,
            .timeout_ns = options_.timeout_ns};
  }

  void Fill(size_t i, uint64_t round) {
    for (uint64_t at = 0; at < options_.bytes; ++at) {
      send_memory_.DataOf(i)[at] = static_cast<std::byte>(round * 31 + i * 7 + at);
    }
  }
  bool Arrived(size_t i) {
    return std::equal(send_memory_.DataOf(i), send_memory_.DataOf(i) + options_.bytes,
                      receive_memory_.DataOf(i));
  }
  bool Done(size_t i, uint64_t round) {
    return send_memory_.DoneOf(i) >= round && receive_memory_.DoneOf(i) >= round;
  }
  [[nodiscard]] bool PollUntil(const std::function<bool()>& condition) {
    const uint64_t give_up_ns = MonotonicNs() + kPatienceNs;
    while (!condition()) {
      if ((sender_ != nullptr ? sender_->Poll() : 0) +
              (receiver_ != nullptr ? receiver_->Poll() : 0) ==
          0) {
        sched_yield();
      }
      if (MonotonicNs() > give_up_ns) {
        return false;
      }
    }
    return true;
  }

  Options options_;
  std::unique_ptr<NicNode> sender_;
  std::unique_ptr<NicNode> receiver_;
  EndMemory send_memory_;
  EndMemory receive_memory_;
  PeerId receiver_of_sender_{};
  PeerId sender_of_receiver_{};
  std::vector<NicChannel*> sends;
  std::vector<NicChannel*> receives;
};

inline bool HasFailed(uint64_t word) { return word >= shm::kCounterFailure; }

}  // namespace ferry::daemon
