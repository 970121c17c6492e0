import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoCommandException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bson.Document;

/**
 * Reads a connection string a line. Logs in, inserts a document, finds it, and prints "found"; or prints the code
 * of the server's refusal. Connection strings of this driver cannot name files of certificates, so a tab and
 * their folder follow, and another tab and the name of the client's certificate.
 */
public class Login {
    static String pem(Path file, String kind) throws Exception {
        String text = Files.readString(file);
        String begin = "-----BEGIN " + kind + "-----";
        int from = text.indexOf(begin) + begin.length();
        return text.substring(from, text.indexOf("-----END", from));
    }

    static Certificate certificate(Path file) throws Exception {
        byte[] bytes = Base64.getMimeDecoder().decode(pem(file, "CERTIFICATE"));
        return CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(bytes));
    }

    static SSLContext tls(Path folder, String client) throws Exception {
        KeyStore authorities = KeyStore.getInstance("PKCS12");
        authorities.load(null, null);
        authorities.setCertificateEntry("ca", certificate(folder.resolve("ca.pem")));
        TrustManagerFactory trusted = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trusted.init(authorities);
        KeyStore keys = KeyStore.getInstance("PKCS12");
        keys.load(null, null);
        if (client != null) {
            Path file = folder.resolve(client + ".pem");
            byte[] bytes = Base64.getMimeDecoder().decode(pem(file, "PRIVATE KEY"));
            PrivateKey key = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(bytes));
            keys.setKeyEntry("client", key, new char[0], new Certificate[] {certificate(file)});
        }
        KeyManagerFactory own = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        own.init(keys, new char[0]);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(own.getKeyManagers(), trusted.getTrustManagers(), null);
        return context;
    }

    static MongoClientSettings settings(String[] line) throws Exception {
        MongoClientSettings.Builder settings =
            MongoClientSettings.builder().applyConnectionString(new ConnectionString(line[0]));
        if (line.length > 1) {
            SSLContext context = tls(Path.of(line[1]), line.length > 2 ? line[2] : null);
            settings.applyToSslSettings(builder -> builder.enabled(true).context(context));
        }
        return settings.build();
    }

    static String login(String[] line) throws Exception {
        try (MongoClient client = MongoClients.create(settings(line))) {
            MongoCollection<Document> cakes = client.getDatabase("shop").getCollection("cakes");
            Document inserted = new Document("driver", "java");
            cakes.insertOne(inserted);
            Document found = cakes.find(new Document("_id", inserted.get("_id"))).first();
            return found.getString("driver").equals("java") ? "found" : "another document";
        }
    }

    static String answer(Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            if (cause instanceof MongoCommandException) {
                return Integer.toString(((MongoCommandException) cause).getErrorCode());
            }
        }
        return error.toString();
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String printed;
            try {
                printed = login(line.split("\t"));
            } catch (Exception error) {
                printed = answer(error);
            }
            System.out.println(printed);
        }
    }
}
