import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Accepts every record of a queue until it is killed; says which came, and which are finished. */
public class QueueWorker {
    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", args[2]);
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("max.poll.records", "20");
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("request.timeout.ms", "30000");
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(args[1]));
            while (true) {
                work(consumer);
            }
        }
    }

    /** So that a kill comes while records are on their way. */
    private static void rest() {
        try {
            Thread.sleep(50);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void work(KafkaShareConsumer<String, String> consumer) {
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
        Map<Integer, StringBuilder> offsets = new HashMap<>();
        StringBuilder got = new StringBuilder("got");
        for (ConsumerRecord<String, String> each : records) {
            String place = " " + each.partition() + ":" + each.offset();
            got.append(place).append("x").append(each.deliveryCount().orElse((short) 0));
            offsets.computeIfAbsent(each.partition(), p -> new StringBuilder()).append(place);
            consumer.acknowledge(each, AcknowledgeType.ACCEPT);
        }
        if (records.isEmpty()) {
            return;
        }
        System.out.println(got);
        rest();
        try {
            Map<TopicIdPartition, Optional<KafkaException>> result = consumer.commitSync();
            result.forEach((place, error) -> {
                StringBuilder of = offsets.get(place.partition());
                String word = error.map(e -> "refused " + e.getClass().getSimpleName()).orElse("done");
                System.out.println(word + (of == null ? "" : of));
            });
        } catch (KafkaException error) {
            System.out.println("failed " + error);
        }
    }
}
