import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Reads a queue in one of several ways, and says a line for each thing that happens. */
public class ShareReader {
    private static final long FIRST_MS = 60_000;
    private static final long QUIET_MS = 4000;
    private boolean hasStarted;
    private final KafkaShareConsumer<String, String> consumer;

    private ShareReader(KafkaShareConsumer<String, String> consumer) {
        this.consumer = consumer;
    }

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], topic = args[1], group = args[2], way = args[3];
        configure(bootstrap, group, Arrays.copyOfRange(args, 4, args.length));
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("share.acknowledgement.mode", way.equals("implicit") ? "implicit" : "explicit");
        if (way.equals("limit")) {
            settings.put("share.acquire.mode", "record_limit");
            settings.put("max.poll.records", "2");
        }
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            ShareReader reader = new ShareReader(consumer);
            switch (way) {
                case "implicit" -> reader.implicit();
                case "explicit", "limit" -> reader.explicit();
                case "late" -> reader.late();
                case "renew" -> reader.renew();
                case "backoff" -> reader.backoff();
                case "time", "header" -> reader.delay();
                default -> throw new IllegalArgumentException(way);
            }
        }
        System.out.println("closed");
    }

    /** Sets what the group has, "name=value" each. */
    private static void configure(String bootstrap, String group, String[] more) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        changes.add(set("share.auto.offset.reset", "earliest"));
        for (String each : more) {
            changes.add(set(each.substring(0, each.indexOf('=')), each.substring(each.indexOf('=') + 1)));
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
            admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
        }
    }

    private static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }

    /** Every poll accepts what the one before gave. */
    private void implicit() {
        for (List<ConsumerRecord<String, String>> got = next(); !got.isEmpty(); got = next()) {
            tell(got);
        }
    }

    /** At first accepts what is even, rejects every fifth, releases the rest; then accepts all. */
    private void explicit() {
        for (List<ConsumerRecord<String, String>> got = next(); !got.isEmpty(); got = next()) {
            tell(got);
            for (ConsumerRecord<String, String> each : got) {
                consumer.acknowledge(each, judged(each));
            }
            commit();
        }
    }

    private static AcknowledgeType judged(ConsumerRecord<String, String> record) {
        if (record.deliveryCount().orElse((short) 0) > 1 || record.offset() % 2 == 0) {
            return AcknowledgeType.ACCEPT;
        }
        return record.offset() % 5 == 0 ? AcknowledgeType.REJECT : AcknowledgeType.RELEASE;
    }

    /** Sleeps over the end of its locks three times; then accepts, releases and rejects in turn. */
    private void late() throws Exception {
        for (int round = 0; round < 3; round++) {
            List<ConsumerRecord<String, String>> got = next();
            tell(got);
            Thread.sleep(2500);
            got.forEach(each -> consumer.acknowledge(each, AcknowledgeType.ACCEPT));
            commit();
        }
        List<AcknowledgeType> types =
            Arrays.asList(AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT);
        for (List<ConsumerRecord<String, String>> got = next(); !got.isEmpty(); got = next()) {
            tell(got);
            for (int i = 0; i < got.size(); i++) {
                boolean alone = got.size() == 1;
                consumer.acknowledge(got.get(i), alone ? AcknowledgeType.RELEASE : types.get(i % 3));
            }
            commit();
        }
    }

    /** Renews three times, each before the lock ends, then accepts: poll gives them each time. */
    private void renew() throws Exception {
        for (int round = 0; round < 4; round++) {
            List<ConsumerRecord<String, String>> got = next();
            tell(got);
            AcknowledgeType type = round < 3 ? AcknowledgeType.RENEW : AcknowledgeType.ACCEPT;
            Thread.sleep(1200);
            got.forEach(each -> consumer.acknowledge(each, type));
            commit();
        }
        tell(next());
    }

    /** Releases each record twice, and says which came sooner than 500 ms, doubled each time. */
    private void backoff() {
        long released = System.nanoTime();
        for (List<ConsumerRecord<String, String>> got = next(); !got.isEmpty(); got = next()) {
            tell(got);
            for (ConsumerRecord<String, String> each : got) {
                int count = each.deliveryCount().orElse((short) 0);
                if (count > 1 && System.nanoTime() - released < 500_000_000L << (count - 2)) {
                    System.out.println("early " + each.offset());
                }
                consumer.acknowledge(each, count < 3 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
            }
            released = System.nanoTime();
            commit();
        }
    }

    /** Accepts six, and says which came before its time, or before that of its header. */
    private void delay() {
        for (int count = 0; count < 6; ) {
            List<ConsumerRecord<String, String>> got = next();
            long now = System.currentTimeMillis();
            if (got.isEmpty()) {
                continue;
            }
            count += got.size();
            tell(got);
            for (ConsumerRecord<String, String> each : got) {
                Header header = each.headers().lastHeader("horolog-deliver-at");
                String text = header == null ? null : new String(header.value(), StandardCharsets.UTF_8);
                if (now < (text == null ? each.timestamp() : Long.parseLong(text))) {
                    System.out.println("early " + each.offset());
                }
                consumer.acknowledge(each, AcknowledgeType.ACCEPT);
            }
            commit();
        }
    }

    private List<ConsumerRecord<String, String>> next() {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long end = System.currentTimeMillis() + (hasStarted ? QUIET_MS : FIRST_MS);
        while (found.isEmpty() && System.currentTimeMillis() < end) {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
            records.forEach(found::add);
        }
        hasStarted = true;
        return found;
    }

    private static void tell(List<ConsumerRecord<String, String>> got) {
        StringBuilder line = new StringBuilder("got");
        for (ConsumerRecord<String, String> each : got) {
            line.append(" ").append(each.offset()).append("x");
            line.append(each.deliveryCount().map(String::valueOf).orElse("?"));
        }
        System.out.println(line);
    }

    private void commit() {
        Map<TopicIdPartition, Optional<KafkaException>> result = consumer.commitSync();
        StringBuilder line = new StringBuilder("commit");
        result.values().forEach(
            each -> line.append(" ").append(each.map(e -> e.getClass().getSimpleName()).orElse("ok")));
        System.out.println(line);
    }
}
