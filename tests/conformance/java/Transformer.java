import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A consume-transform-produce process with exactly-once: copies INPUT to OUTPUT, values turned round. */
public class Transformer {
    public static void main(String[] arguments) {
        String bootstrap = arguments[0], input = arguments[1], output = arguments[2];
        Properties common = new Properties();
        common.put("bootstrap.servers", bootstrap);
        common.put("reconnect.backoff.max.ms", "200");
        Properties forConsumer = new Properties();
        forConsumer.putAll(common);
        forConsumer.put("group.id", arguments[3]);
        forConsumer.put("group.instance.id", arguments[4]);
        forConsumer.put("isolation.level", "read_committed");
        forConsumer.put("auto.offset.reset", "earliest");
        forConsumer.put("enable.auto.commit", "false");
        forConsumer.put("max.poll.records", "50");
        Properties forProducer = new Properties();
        forProducer.putAll(common);
        forProducer.put("transactional.id", arguments[4]);
        forProducer.put("transaction.timeout.ms", "10000");
        KafkaConsumer<String, String> consumer =
            new KafkaConsumer<>(forConsumer, new StringDeserializer(), new StringDeserializer());
        KafkaProducer<String, String> producer =
            new KafkaProducer<>(forProducer, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        consumer.subscribe(List.of(input));
        while (true) {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            if (records.isEmpty()) {
                continue;
            }
            try {
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<String, String> each : records) {
                    String turned = new StringBuilder(each.value()).reverse().toString();
                    producer.send(new ProducerRecord<>(output, each.partition(), each.key(), turned));
                    offsets.put(new TopicPartition(each.topic(), each.partition()),
                        new OffsetAndMetadata(each.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
            } catch (ProducerFencedException | OutOfOrderSequenceException | AuthorizationException error) {
                System.err.println("final: " + error);
                Runtime.getRuntime().halt(3);
            } catch (KafkaException error) {
                System.err.println("aborts: " + error);
                producer.abortTransaction();
                goBack(consumer);
            }
        }
    }

    private static void goBack(KafkaConsumer<String, String> consumer) {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        for (TopicPartition each : new ArrayList<>(consumer.assignment())) {
            OffsetAndMetadata at = committed.get(each);
            consumer.seek(each, at == null ? 0 : at.offset());
        }
    }
}
