#include "tools/ferryrun/relay_link.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <optional>
#include <utility>

#include "tools/ferryrun/launcher_process.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {
namespace {

constexpr size_t kBlockBytes = 1 << 16;

// The channels of one connection.
class RelayLink {
 public:
  RelayLink(std::unique_ptr<LauncherProcess> launcher, const RelayTree& tree)
      : launcher_(std::move(launcher)),
        first_channel_(tree.first_channel),
        first_host_(tree.hosts.front()),
        channels_(tree.hosts.size()) {
    Send(FrameKind::kTree, 0, ToText(tree));
  }

  // Returns the end to read the errors of a host from.
  StatusOr<UniqueFd> MakeErrors(size_t host) {
    if (host == 0) {
      return launcher_->TakeErrors();
    }
    StatusOr<Pipe> pipe = MakePipe();
    FERRY_RETURN_IF_ERROR(pipe.status());
    fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
    fcntl(pipe->write.get(), F_SETFL, O_NONBLOCK);
    channels_[host].errors = std::move(pipe->write);
    return std::move(pipe->read);
  }

  pid_t pid() const { return launcher_->pid(); }
  pollfd WordsInterest() const {
    return fault_.ok() ? launcher_->WordsInterest() : pollfd{-1, POLLIN, 0};
  }
  pollfd RoomInterest() const { return launcher_->RoomInterest(); }
  void Write(size_t host, std::string_view bytes);
  void WriteShared(size_t host, const std::shared_ptr<const std::string>& bytes);
  void Close(size_t host);
  void Advance();
  std::string Take(size_t host);
  bool HasEnded(size_t host) const {
    return (IsOver() || channels_[host].ended) && channels_[host].received.empty();
  }
  std::string HowEnded(size_t host) const;
  bool HaveEndedTogether(size_t one, size_t other) const {
    return channels_[one].how_ended == channels_[other].how_ended;
  }

 private:
  // Bytes for an agent, or the number of those in shared_ that are.
  struct Input {
    std::string bytes = {};
    std::optional<uint32_t> shared = {};
  };
  struct Channel {
    std::deque<Input> to_send;
    int64_t room = kChannelWindowBytes;  // shared bytes may take more than there is
    std::string received;
    size_t taken = 0;  // bytes that the relay does not know yet to have gone on
    UniqueFd errors;
    std::string errors_waiting;  // their pipe is full
    bool ended = false;
    std::string how_ended;
  };

  bool IsOver() const { return !fault_.ok() || launcher_->ended(); }
  void Send(FrameKind kind, size_t host, std::string_view payload) {
    std::string frame;
    AppendFrame(kind, first_channel_ + static_cast<uint32_t>(host), payload, &frame);
    launcher_->Write(frame);
  }
  void SendInput(size_t host);
  void PassErrorsOn(Channel* channel, std::string_view bytes);
  Status OnFrame(const Frame& frame);

  const std::unique_ptr<LauncherProcess> launcher_;
  const uint32_t first_channel_;
  const std::string first_host_;
  FrameReader reader_{/*greeting=*/true};
  std::vector<Channel> channels_;
  std::vector<std::shared_ptr<const std::string>> shared_;  // that the relay has
  Status fault_;                                            // of what the relay has sent
};

void RelayLink::Write(size_t host, std::string_view bytes) {
  channels_[host].to_send.push_back({.bytes = std::string(bytes)});
  SendInput(host);
}

void RelayLink::WriteShared(size_t host, const std::shared_ptr<const std::string>& bytes) {
  const auto known = std::find(shared_.begin(), shared_.end(), bytes);
  const auto number = static_cast<uint32_t>(known - shared_.begin());
  if (known == shared_.end()) {
    std::string frame;
    AppendFrame(FrameKind::kShared, number, *bytes, &frame);
    launcher_->Write(frame);
    shared_.push_back(bytes);
  }
  channels_[host].to_send.push_back({.shared = number});
  SendInput(host);
}

void RelayLink::SendInput(size_t host) {
  Channel& channel = channels_[host];
  while (channel.room > 0 && !channel.to_send.empty()) {
    Input& next = channel.to_send.front();
    if (next.shared) {
      Send(FrameKind::kChannelShared, host, NumberPayload(static_cast<int32_t>(*next.shared)));
      channel.room -= static_cast<int64_t>(shared_[*next.shared]->size());
      channel.to_send.pop_front();
      continue;
    }
    const size_t size =
        std::min({next.bytes.size(), kBlockBytes, static_cast<size_t>(channel.room)});
    Send(FrameKind::kChannelInput, host, std::string_view(next.bytes).substr(0, size));
    channel.room -= static_cast<int64_t>(size);
    next.bytes.erase(0, size);
    if (next.bytes.empty()) {
      channel.to_send.pop_front();
    }
  }
}

void RelayLink::Close(size_t host) {
  channels_[host] = Channel{};
  channels_[host].ended = true;
  if (!IsOver()) {
    Send(FrameKind::kChannelClose, host, "");
  }
}

void RelayLink::Advance() {
  launcher_->Advance();
  for (Channel& channel : channels_) {
    if (!channel.errors_waiting.empty()) {
      PassErrorsOn(&channel, "");
    }
  }
  reader_.Feed(launcher_->Take());
  bool has_frame = true;
  while (fault_.ok() && has_frame) {
    const StatusOr<std::optional<Frame>> frame = reader_.Next();
    has_frame = frame.ok() && frame->has_value();
    fault_ = has_frame ? OnFrame(**frame) : frame.status();
  }
  if (!fault_.ok()) {
    launcher_->CloseInput();  // and so ends the agents there
  }
}

Status RelayLink::OnFrame(const Frame& frame) {
  const Status corrupt(ErrorCode::kCorrupt, "a frame that no relay sends");
  const size_t host = frame.rank - first_channel_;
  if (frame.rank < first_channel_ || host >= channels_.size()) {
    return corrupt;
  }
  Channel& channel = channels_[host];
  if (channel.ended) {
    return {};  // it was closed here
  }
  switch (frame.kind) {
    case FrameKind::kChannelOutput:
      if (frame.payload.size() > kChannelWindowBytes - channel.received.size()) {
        return corrupt;
      }
      channel.received += frame.payload;
      return {};
    case FrameKind::kChannelErrors:
      PassErrorsOn(&channel, frame.payload);
      return {};
    case FrameKind::kChannelEnd:
      channel.ended = true;
      channel.how_ended = frame.payload;
      channel.errors.Reset();  // the reader sees the end
      return {};
    case FrameKind::kChannelRoom: {
      const auto more = static_cast<uint32_t>(ReadNumber(frame));
      if (more > static_cast<int64_t>(kChannelWindowBytes) - channel.room) {
        return corrupt;
      }
      channel.room += more;
      SendInput(host);
      return {};
    }
    default:
      return corrupt;
  }
}

// Text for people; it waits while the pipe is full.
void RelayLink::PassErrorsOn(Channel* channel, std::string_view bytes) {
  channel->errors_waiting += bytes;
  const std::string& text = channel->errors_waiting;
  const ssize_t size = channel->errors.valid() && !text.empty()
                           ? write(channel->errors.get(), text.data(), text.size())
                           : 0;
  const bool is_shut = !channel->errors.valid() || (size < 0 && errno != EAGAIN && errno != EINTR);
  channel->errors_waiting.erase(
      0, is_shut ? text.size() : static_cast<size_t>(std::max<ssize_t>(size, 0)));
}

std::string RelayLink::Take(size_t host) {
  Channel& channel = channels_[host];
  channel.taken += channel.received.size();
  if (channel.taken >= kChannelWindowBytes / 4 && !channel.ended && !IsOver()) {
    Send(FrameKind::kChannelRoom, host, NumberPayload(static_cast<int32_t>(channel.taken)));
    channel.taken = 0;
  }
  return std::exchange(channel.received, {});
}

std::string RelayLink::HowEnded(size_t host) const {
  if (const Channel& channel = channels_[host]; channel.ended) {
    return channel.how_ended;
  }
  const std::string way = launcher_->name() + " to host " + first_host_;
  if (!fault_.ok()) {
    return way + " brings no relay's words: " + fault_.message();
  }
  const std::string how = launcher_->HowEnded(way);
  const bool is_text = !reader_.has_greeting() && host == 0;
  const std::string written = is_text ? Trimmed(reader_.preamble()) : "";
  return written.empty() ? how : how + "; it wrote:\n  " + written;
}

class RelayedStream final : public HostStream {
 public:
  RelayedStream(std::shared_ptr<RelayLink> link, size_t host, UniqueFd errors)
      : link_(std::move(link)), host_(host) {
    errors_ = std::move(errors);
  }
  ~RelayedStream() override { link_->Close(host_); }

  pid_t pid() const override { return link_->pid(); }
  void Write(std::string_view bytes) override { link_->Write(host_, bytes); }
  pollfd WordsInterest() const override { return link_->WordsInterest(); }
  pollfd RoomInterest() const override { return link_->RoomInterest(); }
  void WriteShared(const std::shared_ptr<const std::string>& bytes) override {
    link_->WriteShared(host_, bytes);
  }
  void Advance() override { link_->Advance(); }
  std::string Take() override { return link_->Take(host_); }
  bool ended() const override { return link_->HasEnded(host_); }
  std::string HowEnded() override { return link_->HowEnded(host_); }
  bool IsLostWith(const HostStream& other) const override {
    const auto* relayed = dynamic_cast<const RelayedStream*>(&other);
    return relayed != nullptr && relayed->link_ == link_ &&
           link_->HaveEndedTogether(host_, relayed->host_);
  }

 private:
  const std::shared_ptr<RelayLink> link_;
  const size_t host_;
};

}  // namespace

StatusOr<std::vector<std::unique_ptr<HostStream>>> StartRelay(
    const std::vector<std::string>& command, const RelayTree& tree) {
  StatusOr<std::unique_ptr<LauncherProcess>> launcher = LauncherProcess::Start(command);
  if (!launcher.ok()) {
    return Status(launcher.status().code(),
                  "host " + tree.hosts.front() + ": " + launcher.status().message());
  }
  const auto link = std::make_shared<RelayLink>(std::move(*launcher), tree);
  std::vector<std::unique_ptr<HostStream>> streams;
  for (size_t host = 0; host < tree.hosts.size(); ++host) {
    StatusOr<UniqueFd> errors = link->MakeErrors(host);
    FERRY_RETURN_IF_ERROR(errors.status());
    streams.push_back(std::make_unique<RelayedStream>(link, host, std::move(*errors)));
  }
  return streams;
}

}  // namespace ferry::tools
