"""Protobuf messages of other programs' formats, built at run time, and TFRecord's checksum: what the
interop tests share. Each *_class() is None without python3-protobuf."""

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    descriptor_pb2 = None


def class_of(file, name):
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


def datum_class():
    """Caffe's Datum."""
    if descriptor_pb2 is None:
        return None
    file = descriptor_pb2.FileDescriptorProto(name="datum.proto", syntax="proto2")
    message = file.message_type.add(name="Datum")
    kinds = descriptor_pb2.FieldDescriptorProto
    for number, (name, kind, label) in enumerate([
            ("channels", kinds.TYPE_INT32, 1), ("height", kinds.TYPE_INT32, 1),
            ("width", kinds.TYPE_INT32, 1), ("data", kinds.TYPE_BYTES, 1),
            ("label", kinds.TYPE_INT32, 1), ("float_data", kinds.TYPE_FLOAT, 3),
            ("encoded", kinds.TYPE_BOOL, 1)], 1):
        message.field.add(name=name, number=number, type=kind, label=label)
    return class_of(file, "Datum")


def example_class():
    """tf.train.Example."""
    if descriptor_pb2 is None:
        return None
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tf", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, kind in (("BytesList", kinds.TYPE_BYTES), ("FloatList", kinds.TYPE_FLOAT),
                       ("Int64List", kinds.TYPE_INT64)):
        file.message_type.add(name=name).field.add(name="value", number=1, type=kind,
                                                   label=kinds.LABEL_REPEATED)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (name, kind) in enumerate((("bytes_list", "BytesList"), ("float_list", "FloatList"),
                                           ("int64_list", "Int64List")), 1):
        feature.field.add(name=name, number=number, type=kinds.TYPE_MESSAGE,
                          type_name=".tf." + kind, label=kinds.LABEL_OPTIONAL, oneof_index=0)
    features = file.message_type.add(name="Features")
    features.field.add(name="feature", number=1, type=kinds.TYPE_MESSAGE,
                       type_name=".tf.Features.FeatureEntry", label=kinds.LABEL_REPEATED)
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kinds.TYPE_MESSAGE, type_name=".tf.Feature",
                    label=kinds.LABEL_OPTIONAL)
    file.message_type.add(name="Example").field.add(
        name="features", number=1, type=kinds.TYPE_MESSAGE, type_name=".tf.Features",
        label=kinds.LABEL_OPTIONAL)
    return class_of(file, "tf.Example")


def crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = crc_table()


def masked_crc(data):
    """CRC-32C as TFRecord stores it."""
    crc = 0xffffffff
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xff] ^ crc >> 8
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff
