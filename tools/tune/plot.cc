#include "tools/tune/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tools/display/table.h"

namespace ferry::tools {
namespace {

// In pixels.
constexpr double kWidth = 820;
constexpr double kHeader = 64;
constexpr double kPanelHeight = 380;
constexpr double kLeft = 76;
constexpr double kRight = 200;  // for the names of the lines
constexpr double kTop = 34;
constexpr double kBottom = 56;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kPlotHeight = kPanelHeight - kTop - kBottom;

template <typename... Values>
std::string Format(const char* format, Values... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return escaped;
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void Take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Where a value lies between the ends of an axis: 0 to 1.
struct Axis {
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  double At(double value) const {
    return logarithmic ? std::log(value / low) / std::log(high / low)
                       : (value - low) / (high - low);
  }
};

// A range from the power of two (or of ten) below to the one above.
Axis LogarithmicAxis(const Range& range, double base) {
  const auto power = [base](double value, double (*round)(double)) {
    return std::pow(base, round(std::log(value) / std::log(base)));
  };
  Axis axis{power(range.low, std::floor), power(range.high, std::ceil), true};
  if (axis.low >= axis.high) {
    axis.high = axis.low * base;
  }
  return axis;
}

// A round step of which about six make the range.
double LinearStep(double length) {
  const double rough = length / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      return factor * power;
    }
  }
  return 10 * power;
}

std::vector<double> Ticks(const Axis& axis, double base) {
  std::vector<double> ticks;
  if (axis.logarithmic) {
    const double count = std::round(std::log(axis.high / axis.low) / std::log(base));
    for (int i = 0; i <= static_cast<int>(count); ++i) {
      ticks.push_back(axis.low * std::pow(base, i));
    }
  } else {
    const double step = LinearStep(axis.high - axis.low);
    const double first = std::ceil(axis.low / step);
    const double count = std::floor(axis.high / step + 1e-3) - first;
    for (int i = 0; i <= static_cast<int>(count); ++i) {
      ticks.push_back((first + i) * step);
    }
  }
  return ticks;
}

class PanelDrawing {
 public:
  PanelDrawing(const Panel& panel, double top) : panel_(panel), top_(top + kTop) {
    Range x;
    Range y;
    for (const PlotLine& line : panel.lines) {
      for (const PlotPoint& point : line.points) {
        x.Take(point.x);
        y.Take(point.y);
      }
    }
    if (x.low > x.high) {  // nothing to draw
      x = {1, 2};
      y = {1, 2};
    }
    x_ = LogarithmicAxis(x, 2);
    if (panel.y_is_logarithmic) {
      y_ = LogarithmicAxis(y, 10);
    } else {
      const double step = LinearStep(std::max(y.high - y.low, 1e-3));
      y_ = {std::floor(y.low / step) * step, std::ceil(y.high / step) * step, false};
      if (y_.low >= y_.high) {
        y_.high = y_.low + step;
      }
    }
  }

  std::string Text() {
    Frame();
    for (size_t i = 0; i < panel_.lines.size(); ++i) {
      Line(panel_.lines[i], i);
    }
    if (panel_.marked_x > x_.low && panel_.marked_x < x_.high) {
      Mark();
    }
    return std::move(text_);
  }

 private:
  double X(double value) const { return kLeft + x_.At(value) * kPlotWidth; }
  double Y(double value) const { return top_ + (1 - y_.At(value)) * kPlotHeight; }

  std::string XText(double x) const {
    const auto whole = static_cast<uint64_t>(std::llround(x));
    return panel_.x_is_bytes ? BytesText(whole)
                             : Format("%llu", static_cast<unsigned long long>(whole));
  }

  void Frame() {
    text_ += Format("<text x=\"%.0f\" y=\"%.0f\" class=\"h\">", kLeft, top_ - 12) +
             Escaped(panel_.title) + "</text>\n";
    for (const double tick : Ticks(x_, 2)) {
      text_ += Format("<path class=\"g\" d=\"M%.1f %.1fv%.1f\"/>\n", X(tick), top_, kPlotHeight);
      // Every other one has a name: they would touch each other.
      if (static_cast<int>(std::lround(std::log2(tick))) % 2 == 0) {
        text_ +=
            Format("<text x=\"%.1f\" y=\"%.1f\" class=\"m\">", X(tick), top_ + kPlotHeight + 17) +
            XText(tick) + "</text>\n";
      }
    }
    for (const double tick : Ticks(y_, 10)) {
      text_ += Format("<path class=\"g\" d=\"M%.1f %.1fh%.1f\"/>\n", kLeft, Y(tick), kPlotWidth) +
               Format("<text x=\"%.1f\" y=\"%.1f\" class=\"e\">%.5g</text>\n", kLeft - 7,
                      Y(tick) + 4, std::abs(tick) < 1e-9 ? 0 : tick);
    }
    const double middle = top_ + kPlotHeight / 2;
    text_ += Format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"f\"/>\n",
                    kLeft, top_, kPlotWidth, kPlotHeight) +
             Format("<text x=\"%.1f\" y=\"%.1f\" class=\"m\">", kLeft + kPlotWidth / 2,
                    top_ + kPlotHeight + 38) +
             Escaped(panel_.x_label) + "</text>\n" +
             Format("<text x=\"20\" y=\"%.1f\" class=\"m\" transform=\"rotate(-90 20 %.1f)\">",
                    middle, middle) +
             Escaped(panel_.y_label) + "</text>\n";
  }

  void Mark() {
    const double x = X(panel_.marked_x);
    const bool left = x > kLeft + kPlotWidth / 2;  // on the side where there is room
    text_ += Format("<path class=\"k\" d=\"M%.1f %.1fv%.1f\"/>\n", x, top_, kPlotHeight);
    for (const char* style : {" o", ""}) {  // first a white rim: lines may pass below
      text_ += Format("<text x=\"%.1f\" y=\"%.1f\" class=\"%s%s\">", x + (left ? -6 : 6), top_ + 16,
                      left ? "e" : "b", style) +
               Escaped(panel_.mark) + "</text>\n";
    }
  }

  void Line(const PlotLine& line, size_t index) {
    const std::string stroke =
        "stroke=\"" + line.color + "\"" + (line.dashed ? " stroke-dasharray=\"6 4\"" : "");
    std::string path;
    for (const PlotPoint& point : line.points) {
      path += Format("%c%.1f %.1f", path.empty() ? 'M' : 'L', X(point.x), Y(point.y));
    }
    if (!line.is_bare) {
      text_ += "<path class=\"l\" " + stroke + " d=\"" + path + "\"/>\n";
    }
    for (const PlotPoint& point : line.points) {
      if (line.marks) {
        text_ +=
            Format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" fill=\"", X(point.x), Y(point.y)) +
            line.color + "\"/>\n";
      }
    }
    const double x = kLeft + kPlotWidth + 14;
    const double y = top_ + 8 + 20 * static_cast<double>(index);
    text_ +=
        (line.is_bare ? Format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" fill=\"", x + 13, y) +
                            line.color + "\"/>\n"
                      : "<path class=\"l\" " + stroke + Format(" d=\"M%.1f %.1fh26\"/>\n", x, y)) +
        Format("<text x=\"%.1f\" y=\"%.1f\">", x + 33, y + 4) + Escaped(line.name) + "</text>\n";
  }

  const Panel& panel_;
  double top_;
  Axis x_;
  Axis y_;
  std::string text_;
};

}  // namespace

std::string Svg(const std::string& title, const std::string& subtitle,
                const std::vector<Panel>& panels) {
  const double height = kHeader + kPanelHeight * static_cast<double>(panels.size());
  std::string svg =
      Format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
          "height=\"%.0f\">\n",
          kWidth, height, kWidth, height) +
      "<style>text{font:12px sans-serif;fill:#222}.t{font-size:17px;font-weight:bold}"
      ".h{font-size:13px;font-weight:bold}.m{text-anchor:middle}.e{text-anchor:end}"
      ".g{stroke:#e4e4e4}.f{fill:none;stroke:#888}.k{stroke:#d62728;stroke-dasharray:3 3}"
      ".l{fill:none;stroke-width:1.8}.o{stroke:#fff;stroke-width:4px}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" +
      Format("<text x=\"%.0f\" y=\"26\" class=\"t\">", kLeft) + Escaped(title) + "</text>\n" +
      Format("<text x=\"%.0f\" y=\"46\">", kLeft) + Escaped(subtitle) + "</text>\n";
  for (size_t i = 0; i < panels.size(); ++i) {
    svg += PanelDrawing(panels[i], kHeader + kPanelHeight * static_cast<double>(i)).Text();
  }
  return svg + "</svg>\n";
}

}  // namespace ferry::tools
