// Intersection over union of rotated boxes (x, y, width, height, angle in degrees).
#include <array>
#include <cmath>
#include <numbers>

#include "arguments.hpp"

namespace candelabra::vision {

namespace {

struct Point {
  double x, y;
};

// A convex polygon. Clipping a rectangle by another one makes at most eight corners; rounding may
// add a few.
struct Polygon {
  std::array<Point, 16> corners;
  size_t count = 0;

  void add(Point corner) {
    if (count < corners.size()) corners[count++] = corner;
  }
  double area() const {
    double twice = 0;
    for (size_t i = 0; i < count; ++i) {
      const Point &a = corners[i], &b = corners[(i + 1) % count];
      twice += a.x * b.y - b.x * a.y;
    }
    return std::abs(twice) / 2;
  }
};

struct RotatedBox {
  double x, y, width, height, degrees;

  double area() const { return width * height; }
  // Relative to a center. The y axis points down, and the angle turns counterclockwise.
  Polygon corners(Point center) const {
    const double angle = degrees * std::numbers::pi / 180;
    const double c = std::cos(angle) / 2, s = std::sin(angle) / 2;
    const double dx = x - center.x, dy = y - center.y;
    Polygon polygon;
    polygon.add({dx + s * height + c * width, dy + c * height - s * width});
    polygon.add({dx - s * height + c * width, dy - c * height - s * width});
    polygon.add({dx - s * height - c * width, dy - c * height + s * width});
    polygon.add({dx + s * height - c * width, dy + c * height + s * width});
    return polygon;
  }
};

// The part of a polygon on the inner side of the line from a to b (Sutherland and Hodgman, 1974).
Polygon clip(const Polygon& polygon, Point a, Point b) {
  const auto side = [&](Point p) { return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x); };
  Polygon inner;
  for (size_t i = 0; i < polygon.count; ++i) {
    const Point &p = polygon.corners[i], &q = polygon.corners[(i + 1) % polygon.count];
    const double at_p = side(p), at_q = side(q);
    if (at_p <= 0) inner.add(p);
    if ((at_p < 0 && at_q > 0) || (at_p > 0 && at_q < 0)) {
      const double t = at_p / (at_p - at_q);
      inner.add({p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)});
    }
  }
  return inner;
}

double iou(const RotatedBox& a, const RotatedBox& b) {
  constexpr double smallest_area = 1e-14;
  if (a.area() < smallest_area || b.area() < smallest_area) return 0;
  const Point center{(a.x + b.x) / 2, (a.y + b.y) / 2};
  Polygon common = a.corners(center);
  const Polygon other = b.corners(center);
  for (size_t i = 0; i < 4; ++i) common = clip(common, other.corners[i], other.corners[(i + 1) % 4]);
  const double shared = common.area();
  return shared / (a.area() + b.area() - shared);
}

template <typename T>
RotatedBox read_box(const T* row) {
  return {static_cast<double>(row[0]), static_cast<double>(row[1]), static_cast<double>(row[2]),
          static_cast<double>(row[3]), static_cast<double>(row[4])};
}

void box_iou_rotated(Tensor result, Tensor boxes1, Tensor boxes2, cb_call* call) {
  dispatch_floating(boxes1, [&]<typename T>() {
    const RowMajor<T> first(boxes1), second(boxes2);
    const int64_t count = boxes2.size(0);
    float* to = result.data<float>();
    parallel_for(call, boxes1.size(0), grain_for(count * 256), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const RotatedBox box = read_box(first.data() + 5 * i);
        for (int64_t j = 0; j < count; ++j)
          to[i * count + j] = static_cast<float>(iou(box, read_box(second.data() + 5 * j)));
      }
    });
  });
}

}  // namespace

extern "C" CB_EXPORT int32_t candelabra_vision_box_iou_rotated(cb_call* call) {
  return extension::call<&box_iou_rotated>(call);
}

}  // namespace candelabra::vision
