// One of two ends of a wire inside a test: a transport that pins nothing, lands attachments in
// place, and moves only when it is polled. The test may hold data back in the middle.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "transports/api/transport.h"

namespace ferry::daemon {

class WireEnd final : public transport::Transport {
 public:
  WireEnd() {
    capabilities_.pins = false;
    capabilities_.lands_in_place = true;
    capabilities_.max_message_bytes = 16 << 10;
    capabilities_.max_attachment_bytes = 512 << 10;
  }
  void Join(WireEnd& other) { other_ = &other; }

  // ---- What a test may do
  bool lands_in_place = true;   // else attachments come with their messages
  bool holds_data = false;      // of attachments, the second half does not come
  bool holds_reports = false;   // the core is not told that messages have been taken
  bool holds_messages = false;  // none comes here
  bool repeats = false;         // each message comes again behind others, as by no transport
  uint32_t heads = 0;           // that were asked about
  std::vector<void*> places;    // where attachments went
  size_t registered() const { return regions_.size(); }
  uint64_t reads() const { return statistics_.reads; }
  // The connection has ended with nothing under way.
  void Lose(bool lossless) { loses_.push_back(lossless); }
  // Messages that are on their way here come in the other order, as by no transport.
  void Reverse() { std::reverse(incoming_.begin(), incoming_.end()); }
  // The connection breaks: what is under way is lost.
  void Break() {
    for (WireEnd* const end : {this, other_}) {
      end->incoming_.clear();
      for (const uint64_t context : std::exchange(end->sent_, {})) {
        end->ended_.emplace_back(context, ErrorCode::kNodeUnreachable);
      }
      if (std::exchange(end->is_landing_, false)) {
        end->broken_landing_ = true;
      }
    }
  }

  // ---- transport::Transport
  const transport::Capabilities& capabilities() const override { return capabilities_; }
  const transport::Description& Describe() const override { return description_; }
  const std::vector<std::byte>& Address() const override { return address_; }
  const transport::Statistics& statistics() const override { return statistics_; }
  std::string LastError() const override { return {}; }
  StatusOr<transport::PeerId> AddPeer(std::span<const std::byte>, uint64_t) override {
    return transport::PeerId{1};
  }
  Status RemovePeer(transport::PeerId) override { return {}; }
  void FailPeer(transport::PeerId, ErrorCode code) override {
    is_landing_ = broken_landing_ = false;
    incoming_.clear();
    for (const uint64_t context : std::exchange(sent_, {})) {
      ended_.emplace_back(context, code);
    }
  }
  StatusOr<std::unique_ptr<transport::Registration>> PrepareMemory(void* base, uint64_t bytes,
                                                                   transport::Access) override {
    return std::unique_ptr<transport::Registration>(
        std::make_unique<Range>(static_cast<std::byte*>(base), bytes));
  }
  StatusOr<transport::MemoryRegion> AdoptMemory(
      std::unique_ptr<transport::Registration> registration) override {
    const Range& range = static_cast<const Range&>(*registration);
    regions_.emplace(++last_key_, std::make_pair(range.base, range.bytes));
    return transport::MemoryRegion{transport::RegionHandle{last_key_}, last_key_, 0};
  }
  StatusOr<std::unique_ptr<transport::Registration>> ReleaseMemory(
      transport::RegionHandle region) override {
    regions_.erase(static_cast<uint64_t>(region));
    return std::make_unique<transport::Registration>();
  }
  ErrorCode SendMessage(transport::PeerId, std::span<const std::byte> header,
                        std::span<const std::byte> payload, uint64_t context, uint64_t) override {
    Message message;
    message.header.assign(header.begin(), header.end());
    message.header.insert(message.header.end(), payload.begin(), payload.end());
    other_->incoming_.push_back(std::move(message));
    sent_.push_back(context);
    return ErrorCode::kOk;
  }
  ErrorCode SendMessageFrom(transport::PeerId, std::span<const std::byte> header,
                            const transport::Attachment& attachment, uint64_t context,
                            uint64_t) override {
    const auto* const data = static_cast<const std::byte*>(attachment.data);
    const auto& [base, bytes] = regions_.at(static_cast<uint64_t>(attachment.region));
    if (data < base || data + attachment.bytes > base + bytes) {
      return ErrorCode::kInvalidBuffer;
    }
    Message message;
    message.header.assign(header.begin(), header.end());
    message.data.assign(data, data + attachment.bytes);
    other_->incoming_.push_back(std::move(message));
    sent_.push_back(context);
    return ErrorCode::kOk;
  }
  ErrorCode Write(const transport::RmaRequest&, transport::Placement, uint64_t) override {
    return ErrorCode::kUnsupported;
  }
  ErrorCode Read(const transport::RmaRequest& read, uint64_t) override {
    ++statistics_.reads;
    const auto found = other_->regions_.find(read.key);
    const bool is_there =
        found != other_->regions_.end() && read.remote_address + read.bytes <= found->second.second;
    if (is_there) {
      std::memcpy(read.local, found->second.first + read.remote_address, read.bytes);
    }
    ended_.emplace_back(read.context, is_there ? ErrorCode::kOk : ErrorCode::kInvalidBuffer);
    return ErrorCode::kOk;
  }
  int Poll(transport::CompletionSink& sink, int, uint64_t) override {
    int events = 0;
    if (!holds_reports) {
      for (const uint64_t context : std::exchange(sent_, {})) {
        sink.OnComplete(context, ErrorCode::kOk);
        ++events;
      }
    }
    for (const auto& [context, code] : std::exchange(ended_, {})) {
      sink.OnComplete(context, code);
      ++events;
    }
    for (const bool lossless : std::exchange(loses_, {})) {
      sink.OnConnectionEnded(transport::PeerId{1}, lossless);
      ++events;
    }
    if (std::exchange(broken_landing_, false)) {
      sink.OnLanded(landing_.context, ErrorCode::kNodeUnreachable);
    }
    while (Finish(sink) && !holds_messages && !incoming_.empty()) {
      Begin(sink);
      ++events;
    }
    if (again_.size() > kRepeatedBehind) {
      incoming_.push_back(std::move(again_.front()));
      again_.pop_front();
    }
    return events;
  }
  void DropLanding(uint64_t context) override {
    if (is_landing_ && landing_.context == context) {
      landing_ = {data_.data(), 0, kDropped};
    }
  }
  int WaitFd() const override { return -1; }
  bool PrepareToSleep() override { return false; }
  uint64_t NextPollNs(uint64_t) const override { return UINT64_MAX; }

 private:
  struct Message {
    std::vector<std::byte> header;
    std::vector<std::byte> data;
    bool is_again = false;
  };
  struct Range final : transport::Registration {
    Range(std::byte* its_base, uint64_t its_bytes) : base(its_base), bytes(its_bytes) {}
    std::byte* const base;
    const uint64_t bytes;
  };

  // Takes the next message. Of an attachment that lands, the first half comes at once.
  void Begin(transport::CompletionSink& sink) {
    Message message = std::move(incoming_.front());
    incoming_.pop_front();
    if (!message.data.empty() && lands_in_place) {
      ++heads;
      landing_ = sink.OnHead(transport::kUnknownPeer, message.header, message.data.size());
      if (landing_.to != nullptr) {
        places.push_back(landing_.to);
        data_ = std::move(message.data);
        data_.resize(std::min<uint64_t>(data_.size(), landing_.bytes));
        std::copy(data_.begin(), data_.begin() + static_cast<ptrdiff_t>(data_.size() / 2),
                  landing_.to);
        is_landing_ = true;
        return;
      }
    }
    message.header.insert(message.header.end(), message.data.begin(), message.data.end());
    sink.OnReceive(transport::kUnknownPeer, message.header);
    if (repeats && !message.is_again) {
      message.is_again = true;
      again_.push_back(std::move(message));
    }
  }
  // Returns true if no message is half received.
  bool Finish(transport::CompletionSink& sink) {
    if (!is_landing_) {
      return true;
    }
    if (holds_data) {
      return false;
    }
    is_landing_ = false;
    if (landing_.context != kDropped) {
      std::copy(data_.begin(), data_.end(), landing_.to);
      sink.OnLanded(landing_.context, ErrorCode::kOk);
    }
    return true;
  }

  static constexpr size_t kRepeatedBehind = 3;
  static constexpr uint64_t kDropped = UINT64_MAX - 1;

  WireEnd* other_ = nullptr;
  transport::Capabilities capabilities_;
  transport::Description description_;
  transport::Statistics statistics_;
  std::vector<std::byte> address_;
  std::map<uint64_t, std::pair<std::byte*, uint64_t>> regions_;  // by key
  uint64_t last_key_ = 0;
  std::deque<Message> incoming_;
  std::deque<Message> again_;  // have come once
  std::vector<uint64_t> sent_;
  std::vector<std::pair<uint64_t, ErrorCode>> ended_;
  std::vector<bool> loses_;
  transport::Landing landing_;
  std::vector<std::byte> data_;
  bool is_landing_ = false;
  bool broken_landing_ = false;
};

}  // namespace ferry::daemon
