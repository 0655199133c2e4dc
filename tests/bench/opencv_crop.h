// What libstripepack-image is measured against: OpenCV decodes all of a picture, cuts the same part
// out of it and resizes that. Only where SPK_HAVE_OPENCV.
#pragma once

#include <cstdint>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <string_view>

#include "stripepack/image.h"

// RGB pixels of ops.width x ops.height into `out`. HOW: one of OpenCV's interpolations. False where
// the picture cannot be decoded.
inline bool opencv_crop(std::string_view picture, uint64_t sample, const spk_image_ops& ops,
                        int how, uint8_t* out) {
  const cv::Mat bytes(1, static_cast<int>(picture.size()), CV_8U,
                      const_cast<char*>(picture.data()));
  const cv::Mat whole = cv::imdecode(bytes, cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION);
  if (whole.empty()) return false;
  spk_image_crop crop = {};
  crop.struct_size = sizeof crop;
  spk_image_plan_crop(static_cast<uint32_t>(whole.cols), static_cast<uint32_t>(whole.rows), &ops,
                      sample, &crop, nullptr);
  const cv::Rect part(static_cast<int>(crop.left), static_cast<int>(crop.top),
                      static_cast<int>(crop.right - crop.left),
                      static_cast<int>(crop.bottom - crop.top));
  cv::Mat slot(static_cast<int>(ops.height), static_cast<int>(ops.width), CV_8UC3, out);
  cv::resize(whole(part), slot, slot.size(), 0, 0, how);
  cv::cvtColor(slot, slot, cv::COLOR_BGR2RGB);
  if (crop.flipped != 0) cv::flip(slot, slot, 1);
  return true;
}
